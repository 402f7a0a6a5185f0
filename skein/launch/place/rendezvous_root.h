// Where the machines and the ranks of a run meet, as `launch.rendezvous` says it: a folder, or etcd
// (store/key_value_store.h), every record signed with the run's secret (store/signed_store.h).
//
//   ""                           the folder `rendezvous` in the run folder
//   "etcd://h:2379/demo"         keys that begin with demo/; without a prefix one that is made of
//                                the run folder's name
//   "etcds://h:2379/demo"        the same over TLS; certificates and users: store/etcd_access.h
// Secret   of a folder its file `secret`, of etcd `rendezvous/secret` in the run folder, unless
//          launch.secret_file or SKEIN_JOB_SECRET names another (store/job_secret.h)
// Errors   Error{kUsage}: `rendezvous` is neither; those of JobSecret::find
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "skein/base/error.h"
#include "skein/store/job_secret.h"
#include "skein/store/key_value_store.h"

namespace skein {

// That folder, or that address with its prefix. Neither makes anything nor reaches for it.
std::string rendezvous_text(const std::string& rendezvous, const fs::path& run_dir);

struct RendezvousRoot {
  std::shared_ptr<StoreRoot> store;
  std::shared_ptr<const JobSecret> secret;
};
// Makes the secret where there is none.
RendezvousRoot rendezvous_root(const std::string& rendezvous, const std::string& secret_file,
                               const fs::path& run_dir, const EtcdAccess& access = {});

// Before anything is made: whether a service lets this run use it. One that does not answer may
// later. Error{kUsage}: it does not, and waiting mends nothing.
void check_rendezvous(const std::string& rendezvous, const fs::path& run_dir,
                      const EtcdAccess& access);

// Calls `use` until it throws no Error{kIo} any more, or `patience_s` are over: a store may come up
// after the run does. Says once that it waits, and for how long.
void when_store_answers(double patience_s, const std::function<void()>& use);

}  // namespace skein
