// What two ranks send each other first on a new connection: that they know the run's secret.
//
//   signature of ("connection", world, the sender's rank, the receiver's rank, "memory" where the
//   sender can read the receiver's memory, else "network")   job_secret.h
// `world` is drawn anew at each start and told in a signed record, so that a proof is of use once,
// and no old start's rank can take part. Nothing is sent to a peer, and nothing that it sends is
// used, before its proof.
//
// Not kept out: Gloo takes the first connection to each of its sockets, and bytes that are no
// message of its own end the process. A stranger that reaches the ports while a run begins can so
// end that attempt, and the next one follows; it learns and alters nothing. Debian's Gloo has
// neither TLS (GLOO_HAVE_TRANSPORT_TCP_TLS is 0) nor all headers that its pairs could be extended
// with (gloo/common/memory.h is not installed).
//
// Threads  one
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <memory>
#include <string>

#include "skein/store/job_secret.h"

namespace skein {

class Proof {
 public:
  // Posts this rank's and does not wait. The ranks are connected. `reads_memory`: this rank can
  // read the peer's.
  Proof(gloo::transport::Context& context, const JobSecret& secret, const std::string& world,
        int peer, bool reads_memory);

  // Whether the peer's proof is right; waits for it, once. gloo::Exception: it is gone, or silent.
  bool is_right(std::chrono::steady_clock::time_point deadline);
  // What a right proof says: the peer can read this rank's memory.
  bool peer_reads_memory() const;

 private:
  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

  JobSecret::Signature own_, expected_, expected_of_reader_, received_{};
  Buffer sent_buffer_, received_buffer_;
};

}  // namespace skein
