// The copies of the state that a machine keeps, owned by its supervisor: what its own workers
// saved, and what the workers of another machine did. It passes the former on to the next machine
// of the generation, takes the latter in, and gives all of it to whoever of the run asks.
//
//   machine 0 → machine 1 → machine 2 → machine 0      each keeps its own and one other's
//
// so that any one machine may be lost, or several that are no neighbours.
//
// Threads  its methods belong to one thread, and none of them waits for another machine; it has one
//          of its own that passes copies on, one that listens, and one a connection
// Memory   for each worker two saves, and the same for each of the machine before it; what another
//          machine before it left is given back once this generation has a save that is whole
// Trust    who is connected has kProofSeconds to prove that it knows the run's secret
//          (secure_socket.h), and the oldest of kMostStrangers who have not makes room for the
//          next: strangers keep no member of the run out
// Errors   Error{kIo}: no memory or no socket to be had. A copy that cannot be passed on is tried
//          again every second, and said once
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "skein/base/shared/heartbeat.h"
#include "skein/base/threads/mutex.h"
#include "skein/replica/wire.h"
#include "skein/replica/worker_place.h"

namespace skein {

class ReplicaServer {
 public:
  static constexpr int kMostStrangers = 64, kProofSeconds = 5;

  // `address`: numeric, where to listen; empty: there are no other machines. `host`: this machine's
  // name in the run.
  ReplicaServer(int num_workers, const std::string& address, const std::string& host,
                const ReplicaKey& key);
  ~ReplicaServer();
  ReplicaServer(const ReplicaServer&) = delete;
  ReplicaServer& operator=(const ReplicaServer&) = delete;

  const ReplicaEndpoint& endpoint() const { return endpoint_; }

  // A generation begins here: `page` tells what its workers have saved, `next` is the machine that
  // keeps copies of it, if there is another one. Until end_generation.
  void begin_generation(int64_t number, const HeartbeatPage& page,
                        const std::optional<ReplicaEndpoint>& next);
  void end_generation();
  // From generation `number` on nobody goes on from what is kept. Not during a generation.
  void forget_all(int64_t number);
  // What worker `index` is to be told, and the files that it must inherit.
  ReplicaPlace place(int index);

 private:
  struct Kept {
    explicit Kept(const std::string& name) : file(make_replica_file(name)) {}
    FileDescriptor file;
    Mutex writes;  // held by the connection over which it is filled; readers look at its label
  };
  // Of a worker of the machine before, or of this one.
  using Key = std::pair<int, int>;  // its index, the slot
  struct Connection {
    enum class Of : uint8_t { kStranger, kMember, kNobody };  // kNobody: it made room
    int socket = -1;                                          // for shutdown
    Of of = Of::kStranger;
  };

  void listen_on(const std::string& address);
  void accept_connections();
  void make_room() SKEIN_REQUIRES(mutex_);
  void know(int number);
  void serve(FileDescriptor file, int number);
  void take_in(ReplicaSocket& socket, const ReplicaRequest& request);
  void give_out(ReplicaSocket& socket, const ReplicaRequest& request);
  Kept& other(Key key);
  std::vector<Kept*> all_kept();
  std::vector<Kept*> kept_of_others();
  void pass_on();
  bool pass_on_all();
  void release_former();
  void hold(int socket, const HeartbeatPage* page);

  const int num_workers_;
  const ReplicaKey key_;
  ReplicaEndpoint endpoint_;
  FileDescriptor listener_, event_;
  std::map<Key, std::unique_ptr<Kept>> own_;  // fixed from the constructor on
  std::atomic<int64_t> generation_ = 0;
  std::atomic<bool> ends_ = false;
  std::atomic<bool> told_of_take_ = false;

  Mutex mutex_;
  ConditionVariable changed_;
  std::map<Key, std::unique_ptr<Kept>> others_ SKEIN_GUARDED_BY(mutex_);
  const HeartbeatPage* page_ SKEIN_GUARDED_BY(mutex_) = nullptr;
  std::optional<ReplicaEndpoint> next_ SKEIN_GUARDED_BY(mutex_);
  bool passing_ SKEIN_GUARDED_BY(mutex_) = false;
  int passes_over_ SKEIN_GUARDED_BY(mutex_) = -1;                   // socket; -1: none
  std::map<int, Connection> connections_ SKEIN_GUARDED_BY(mutex_);  // by number, oldest first
  int num_connections_ SKEIN_GUARDED_BY(mutex_) = 0;

  std::thread passes_on_, listens_;
};

}  // namespace skein
