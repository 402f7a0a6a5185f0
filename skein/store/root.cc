#include "skein/base/error.h"
#include "skein/store/key_value_store.h"

namespace skein {

void remove_place(StoreRoot& root, const std::string& place) noexcept {
  try {
    root.open(place)->remove_all();
  } catch (const std::exception&) {
  }
}

std::unique_ptr<StoreRoot> store_root(const std::string& rendezvous, const EtcdAccess& access) {
  if (is_etcd_address(rendezvous)) return etcd_root(rendezvous, access);
  if (rendezvous.find("://") != std::string::npos) {
    fail(ErrorCode::kUsage,
         "launch.rendezvous is \"{}\": expected a folder that every machine sees, or "
         "etcd://host:port[,host:port...]/prefix, or etcds:// with TLS",
         rendezvous.substr(0, 200));
  }
  return folder_root(rendezvous);
}

}  // namespace skein
