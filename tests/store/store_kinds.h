// The kinds of store that a run can meet in, for tests that run once with each.
#pragma once

#include <memory>
#include <string>

#include "skein/store/key_value_store.h"
#include "tests/store/etcd_server.h"

namespace skein::test {

class StoreKind {
 public:
  virtual ~StoreKind() = default;
  virtual std::string address() const = 0;
  // A value as somebody who is no part of the run writes it.
  virtual void write_raw(const std::string& place, const std::string& name,
                         const std::string& value) const = 0;
  std::unique_ptr<StoreRoot> root() const { return store_root(address()); }
};

class FolderKind : public StoreKind {
 public:
  std::string address() const override { return folder_.path().string(); }
  void write_raw(const std::string& place, const std::string& name,
                 const std::string& value) const override {
    folder_store(folder_ / place)->write(name, value);
  }

 private:
  const TempFolder folder_;
};

// One server for all tests of a program; each has a prefix of its own.
class EtcdKind : public StoreKind {
 public:
  static EtcdServer& server() {
    static EtcdServer server;
    return server;
  }
  std::string address() const override { return server().address(prefix_); }
  void write_raw(const std::string& place, const std::string& name,
                 const std::string& value) const override {
    EtcdClient({server().endpoint()}).put(prefix_ + "/" + place + "/records/" + name, value, 0);
  }

 private:
  static int& count() {
    static int count = 0;
    return count;
  }
  const std::string prefix_ = "test-" + std::to_string(++count());
};

inline std::unique_ptr<StoreKind> store_kind(const std::string& name) {
  if (name == "folder") return std::make_unique<FolderKind>();
  return std::make_unique<EtcdKind>();
}

}  // namespace skein::test
