#include "nccl.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda_emulation.h"
#include "skein/tensor/dtype.h"

namespace {

using Lock = std::unique_lock<std::recursive_mutex>;

enum class Kind { kSend, kReceive, kAllGather, kReduceScatter, kAllReduce, kBroadcast };

// One call of one rank.
struct Call {
  Kind kind;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclInt8;
  int peer = 0;  // or the root
  bool runs = false, done = false;
};

// What the ranks of a communicator share.
struct Clique {
  int size = 0;
  int arrived = 0;
  // The ends of messages (from, to), and the ranks of collectives, that were enqueued at least
  // once: then the host goes on.
  std::set<std::pair<int, int>> sent, received;
  std::set<int> took_part;
  // Calls that run and wait for their other end.
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Call>>> sends, receives;
  std::map<int64_t, std::map<int, std::shared_ptr<Call>>> collectives;  // by number, then rank
  std::multiset<cudaStream_t> streams;  // with calls that are enqueued and have not ended
};

size_t size_of(ncclDataType_t type) {
  return type == ncclInt8 ? 1 : type == ncclBfloat16 ? 2 : type == ncclFloat64 ? 8 : 4;
}
size_t bytes_of(const Call& call) { return call.count * size_of(call.type); }
bool is_message(const Call& call) {
  return call.kind == Kind::kSend || call.kind == Kind::kReceive;
}

}  // namespace

struct NcclEmulationComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int64_t num_collectives = 0;
  bool aborted = false;
};

namespace {

using Comm = std::shared_ptr<NcclEmulationComm>;

std::map<std::string, std::shared_ptr<Clique>> cliques;  // that are being made, by id
std::string own_ids() { return "process " + std::to_string(::getpid()) + " clique "; }
std::map<ncclComm_t, Comm> comms;

struct Enqueued {
  Comm comm;
  cudaStream_t stream;
  std::vector<std::shared_ptr<Call>> calls;
  std::vector<int64_t> numbers;  // of collectives
};
thread_local int group_depth = 0;
thread_local std::vector<Enqueued> group;

template <typename T>
void add_rows(const std::vector<const Call*>& terms, size_t begin, size_t count, void* to) {
  std::vector<T> sum(count);
  for (size_t i = 0; i < count; ++i) {
    sum[i] = static_cast<const T*>(terms[0]->from)[begin + i];
    for (size_t rank = 1; rank < terms.size(); ++rank) {
      const T term = static_cast<const T*>(terms[rank]->from)[begin + i];
      if constexpr (std::is_same_v<T, skein::bfloat16>) {
        sum[i] = T(static_cast<float>(sum[i]) + static_cast<float>(term));
      } else {
        sum[i] = static_cast<T>(sum[i] + term);
      }
    }
  }
  std::memcpy(to, sum.data(), count * sizeof(T));
}

void add(const std::vector<const Call*>& terms, size_t begin, size_t count, void* to) {
  switch (terms[0]->type) {
    case ncclInt32:
      return add_rows<uint32_t>(terms, begin, count, to);
    case ncclFloat32:
      return add_rows<float>(terms, begin, count, to);
    case ncclFloat64:
      return add_rows<double>(terms, begin, count, to);
    case ncclBfloat16:
      return add_rows<skein::bfloat16>(terms, begin, count, to);
    default:
      cuda_emulation::die("nccl: a sum of a type that is not emulated");
  }
}

// Called when all ranks run it. One rank's output may be another's input, so that results are kept
// apart first.
void run_collective(const std::map<int, std::shared_ptr<Call>>& by_rank) {
  std::vector<const Call*> calls;
  for (const auto& [rank, call] : by_rank) calls.push_back(call.get());
  const Call& first = *calls[0];
  for (const Call* call : calls) {
    if (call->kind != first.kind || call->count != first.count || call->type != first.type ||
        call->peer != first.peer) {
      cuda_emulation::die("nccl: ranks take part in different collectives");
    }
  }
  const size_t bytes = bytes_of(first), n = calls.size();
  std::vector<std::vector<char>> results(n);
  for (size_t rank = 0; rank < n; ++rank) {
    results[rank].resize(first.kind == Kind::kAllGather ? n * bytes : bytes);
    char* to = results[rank].data();
    if (first.kind == Kind::kAllGather) {
      for (size_t from = 0; from < n; ++from) {
        std::memcpy(to + from * bytes, calls[from]->from, bytes);
      }
    } else if (first.kind == Kind::kBroadcast) {
      std::memcpy(to, calls[static_cast<size_t>(first.peer)]->from, bytes);
    } else {
      const size_t begin = first.kind == Kind::kReduceScatter ? rank * first.count : 0;
      add(calls, begin, first.count, to);
    }
  }
  for (size_t rank = 0; rank < n; ++rank) {
    std::memcpy(calls[rank]->to, results[rank].data(), results[rank].size());
  }
  for (const auto& [rank, call] : by_rank) call->done = true;
}

void begin(Clique& clique, int rank, const std::shared_ptr<Call>& call, int64_t number) {
  call->runs = true;
  cuda_emulation::note_change();
  if (call->kind == Kind::kSend) {
    clique.sends[{rank, call->peer}].push_back(call);
  } else if (call->kind == Kind::kReceive) {
    clique.receives[{call->peer, rank}].push_back(call);
  } else {
    clique.collectives[number][rank] = call;
  }
}

// Moves messages that have both ends, and runs collectives that have all ranks.
void match(Clique& clique) {
  for (auto& [pair, sends] : clique.sends) {
    auto& receives = clique.receives[pair];
    while (!sends.empty() && !receives.empty()) {
      const Call &send = *sends.front(), &receive = *receives.front();
      if (bytes_of(send) != bytes_of(receive))
        cuda_emulation::die("nccl: a message is not as long as its receiver says");
      std::memmove(receive.to, send.from, bytes_of(send));
      sends.front()->done = receives.front()->done = true;
      sends.pop_front();
      receives.pop_front();
    }
  }
  std::erase_if(clique.collectives, [&](const auto& collective) {
    if (static_cast<int>(collective.second.size()) < clique.size) return false;
    run_collective(collective.second);
    return true;
  });
}

bool all_done(const Enqueued& work) {
  for (const auto& call : work.calls) {
    if (!call->done) return false;
  }
  return true;
}

// A step of the stream: whether the calls have ended.
bool run(const Enqueued& work) {
  Clique& clique = *work.comm->clique;
  for (size_t i = 0; i < work.calls.size() && !work.comm->aborted; ++i) {
    if (!work.calls[i]->runs) begin(clique, work.comm->rank, work.calls[i], work.numbers[i]);
  }
  match(clique);
  if (!all_done(work) && !work.comm->aborted) {
    const std::set<cudaStream_t> others(clique.streams.begin(), clique.streams.end());
    for (const cudaStream_t stream : others) {
      if (stream != work.stream) cuda_emulation::advance(stream);
    }
  }
  if (!all_done(work) && !work.comm->aborted) return false;
  clique.streams.erase(clique.streams.find(work.stream));
  return true;
}

// NCCL makes its connections in the first call that both ends, or all ranks, have made.
bool is_connected(const Enqueued& work) {
  Clique& clique = *work.comm->clique;
  const int rank = work.comm->rank;
  bool connected = true;
  for (const auto& call : work.calls) {
    if (call->kind == Kind::kSend) {
      clique.sent.insert({rank, call->peer});
      connected = connected && clique.received.contains({rank, call->peer});
    } else if (call->kind == Kind::kReceive) {
      clique.received.insert({call->peer, rank});
      connected = connected && clique.sent.contains({call->peer, rank});
    } else {
      clique.took_part.insert(rank);
      connected = connected && static_cast<int>(clique.took_part.size()) == clique.size;
    }
  }
  cuda_emulation::note_change();
  return connected;
}

bool add_to_group(ncclComm_t comm, cudaStream_t stream, const Call& call) {
  const Lock lock(cuda_emulation::device_mutex());
  const auto found = comms.find(comm);
  if (found == comms.end()) return false;
  const Comm& mine = found->second;
  if (call.peer < 0 || call.peer >= mine->clique->size) return false;
  auto work = group.begin();
  while (work != group.end() && (work->comm != mine || work->stream != stream)) ++work;
  if (work == group.end()) work = group.insert(work, Enqueued{mine, stream, {}, {}});
  work->numbers.push_back(is_message(call) ? -1 : mine->num_collectives++);
  work->calls.push_back(std::make_shared<Call>(call));
  return true;
}

ncclResult_t enqueue(ncclComm_t comm, cudaStream_t stream, const Call& call) {
  ncclGroupStart();
  const bool added = add_to_group(comm, stream, call);
  const ncclResult_t ended = ncclGroupEnd();
  return added ? ended : ncclInvalidArgument;
}

}  // namespace

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  const std::vector<Enqueued> works = std::exchange(group, {});
  Lock lock(cuda_emulation::device_mutex());
  for (const Enqueued& work : works) {
    while (!is_connected(work)) {
      if (work.comm->aborted) return ncclInternalError;
      cuda_emulation::something_changed().wait(lock);
    }
    work.comm->clique->streams.insert(work.stream);
    if (cuda_emulation::enqueue_step(work.stream, [work] { return run(work); }) != cudaSuccess) {
      return ncclUnhandledCudaError;
    }
  }
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::kSend, from, nullptr, count, type, peer});
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::kReceive, nullptr, to, count, type, peer});
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::kAllGather, from, to, count, type});
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::kReduceScatter, from, to, count, type});
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::kAllReduce, from, to, count, type});
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::kBroadcast, from, to, count, type, root});
}

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int count = 0;
  const Lock lock(cuda_emulation::device_mutex());
  *id = {};
  std::snprintf(id->internal, sizeof(id->internal), "%s%d", own_ids().c_str(), ++count);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  if (std::string(id.internal).rfind(own_ids(), 0) != 0) return ncclSystemError;
  Lock lock(cuda_emulation::device_mutex());
  std::shared_ptr<Clique>& making = cliques[id.internal];
  if (making == nullptr) making = std::make_shared<Clique>(Clique{.size = size});
  const std::shared_ptr<Clique> clique = making;
  if (clique->size != size || rank < 0 || rank >= size) return ncclInvalidArgument;
  auto mine = std::make_shared<NcclEmulationComm>(NcclEmulationComm{clique, rank});
  ++clique->arrived;
  comms[mine.get()] = mine;
  cuda_emulation::note_change();
  cuda_emulation::something_changed().wait(lock, [&] { return clique->arrived == size; });
  cliques.erase(id.internal);
  *comm = mine.get();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Lock lock(cuda_emulation::device_mutex());
  const auto found = comms.find(comm);
  if (found == comms.end()) return ncclInvalidArgument;
  found->second->aborted = true;
  // Nobody's call ends by meeting one of this rank any more.
  Clique& clique = *found->second->clique;
  for (auto* ends : {&clique.sends, &clique.receives}) {
    std::erase_if(*ends, [&](const auto& end) {
      return end.first.first == comm->rank || end.first.second == comm->rank;
    });
  }
  clique.collectives.clear();
  comms.erase(found);
  cuda_emulation::note_change();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const Lock lock(cuda_emulation::device_mutex());
  *error = ncclSuccess;
  return comms.contains(comm) ? ncclSuccess : ncclInvalidArgument;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess       ? "no error"
         : result == ncclSystemError ? "ranks of an emulated NCCL are threads of one process"
                                     : "an error of the emulation";
}
const char* ncclGetLastError(ncclComm_t) { return ""; }
