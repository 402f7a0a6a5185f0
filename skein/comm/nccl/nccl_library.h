// libnccl.so.2, loaded when ranks first need it: programs start, plan and train on one GPU without.
//
// Errors  Error{kUnsupported}: it is not there, or too old; what to install
#pragma once

#include <nccl.h>

#include <string>

namespace skein {

struct NcclLibrary {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) comm_init_rank;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclBroadcast) broadcast;

  static const NcclLibrary& get();

  // "unhandled system error (what NCCL said last)"
  std::string describe(ncclResult_t result) const;
};

}  // namespace skein
