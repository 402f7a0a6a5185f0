#include <algorithm>
#include <set>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/log.h"
#include "skein/store/key_value_store.h"
#include "skein/supervise/store.h"

namespace skein {
namespace {

constexpr std::string_view kHost = "host-", kGeneration = "generation-", kJson = ".json";

std::string name_of(const std::string& host) {
  return std::string(kHost) + host + std::string(kJson);
}

std::string name_of(int64_t number) { return fmt::format("{}{:08}{}", kGeneration, number, kJson); }

// 0: this is not the name of a generation.
int64_t number_of(const std::string& name) {
  const size_t around = kGeneration.size() + kJson.size();
  if (name.size() != around + 8 || !name.ends_with(kJson)) return 0;
  const std::string digits = name.substr(kGeneration.size(), 8);
  return digits.find_first_not_of("0123456789") == digits.npos ? std::stoll(digits) : 0;
}

class SharedStore : public RendezvousStore {
 public:
  explicit SharedStore(std::shared_ptr<KeyValueStore> store) : store_(std::move(store)) {}

  StoreView exchange(const HostRecord& record) override {
    store_->write(name_of(record.host), host_to_json(record).dump());
    // From now on this record speaks for the one that it replaces.
    if (!record.succeeds.empty() && !std::exchange(spoke_for_it_, true)) {
      store_->remove(name_of(record.succeeds));
    }
    StoreView view;
    for (const auto& [name, text] : store_->entries(std::string(kHost))) {
      read_host(name, text, view);
    }
    view.sort();
    if (view.host(record.host) == nullptr) {  // a full disk may be told of no earlier
      fail(ErrorCode::kIo, "{}/{} does not hold what was written to it: is its disk full?",
           store_->text(), name_of(record.host));
    }
    view.newest = newest();
    return view;
  }

  bool create(const GenerationRecord& generation) override {
    return store_->create(name_of(generation.number), generation_to_json(generation).dump());
  }

  // A generation never changes, so each is read once.
  std::optional<GenerationRecord> newest() {
    int64_t number = 0;
    for (const std::string& name : store_->names(std::string(kGeneration))) {
      number = std::max(number, number_of(name));
    }
    if (newest_ && newest_->number > number) {
      fail(ErrorCode::kInvalid, "{} held generation {}, and holds it no more: somebody removed it",
           store_->text(), newest_->number);
    }
    if (number > 0 && (!newest_ || newest_->number < number)) newest_ = read_generation(number);
    return newest_;
  }

 private:
  GenerationRecord read_generation(int64_t number) {
    const std::string what = store_->text() + "/" + name_of(number);
    const std::optional<std::string> text = store_->read(name_of(number));
    if (!text) fail(ErrorCode::kIo, "{} was removed while it was read", what);
    GenerationRecord generation = generation_from_json(parse_json(*text, what), what);
    if (generation.number != number) {
      fail(ErrorCode::kInvalid, "{}: number is {}, expected that of its name", what,
           generation.number);
    }
    return generation;
  }

  void read_host(const std::string& name, const std::string& text, StoreView& view) {
    const std::string what = store_->text() + "/" + name;
    try {
      HostRecord host = host_from_json(parse_json(text, what), what);
      const std::string expected = name_of(host.host);
      if (name != expected) {
        fail(ErrorCode::kInvalid, "{} is the record of host \"{}\": expected the name {}", what,
             host.host.substr(0, 100), expected.substr(0, 100));
      }
      view.hosts.push_back(std::move(host));
    } catch (const Error& error) {
      if (told_.insert(name).second) log::warn("passed over in the rendezvous: {}", error.what());
    }
  }

  const std::shared_ptr<KeyValueStore> store_;
  bool spoke_for_it_ = false;
  std::optional<GenerationRecord> newest_;
  std::set<std::string> told_;  // records that are not what they should be
};

}  // namespace

std::unique_ptr<RendezvousStore> shared_store(std::shared_ptr<KeyValueStore> store) {
  return std::make_unique<SharedStore>(std::move(store));
}

std::optional<GenerationRecord> newest_generation(std::shared_ptr<KeyValueStore> store) {
  return SharedStore(std::move(store)).newest();
}

}  // namespace skein
