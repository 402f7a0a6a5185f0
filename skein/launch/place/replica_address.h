// Where a machine of the run can be asked for copies of the state, as its record says it; the key
// that proves who asks, and that encrypts, follows from the run's secret (replica/secure_socket.h).
//
//   HostRecord::replicas   "tls:10.0.0.7:41234"; a machine of an earlier version, which passed
//                          copies on without encryption, wrote the address alone: nothing is
//                          asked of it
//   key                    signature("replica key")                           job_secret.h
#pragma once

#include <string>

#include "skein/replica/wire.h"
#include "skein/store/job_secret.h"
#include "skein/supervise/records.h"

namespace skein {

ReplicaKey replica_key(const JobSecret& secret);

// HostRecord::replicas for that address; of none: "".
std::string replicas_text(const std::string& address);

// An empty one: it keeps none, or its record has no address of that form.
ReplicaEndpoint replica_endpoint(const HostRecord& record);

// Whether it keeps copies, but is of a version that does not encrypt them.
bool keeps_plain_replicas(const HostRecord& record);

}  // namespace skein
