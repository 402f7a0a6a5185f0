// Where a machine of the run can be asked for copies of the state: its record has the address, and
// who knows the run's secret computes the token, so that who reads the rendezvous learns none.
//
//   token = the first 16 bytes of signature("replicas", HostRecord::host), in hex   job_secret.h
#pragma once

#include <string>

#include "skein/replica/replica_wire.h"
#include "skein/store/job_secret.h"
#include "skein/supervise/records.h"

namespace skein {

std::string replica_token(const JobSecret& secret, const std::string& host);

// An empty one: it keeps none, or its record has no address.
ReplicaEndpoint replica_endpoint(const HostRecord& record, const JobSecret& secret);

}  // namespace skein
