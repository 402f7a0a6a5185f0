#include "skein/store/key_value_store.h"

#include <utility>

#include "skein/base/text/log.h"

namespace skein {

std::map<std::string, std::string> KeyValueStore::entries(const std::string& prefix,
                                                          const std::set<std::string>& known) {
  std::map<std::string, std::string> entries;
  visit(prefix, known, [&](const std::string& name, Result<std::string> value) {
    if (value.ok()) {
      entries[name] = std::move(value).value();
      return;
    }
    const Lock lock(mutex_);
    if (told_.insert(name).second) {
      log::warn("passed over in the rendezvous: {}", value.error().what());
    }
  });
  return entries;
}

}  // namespace skein
