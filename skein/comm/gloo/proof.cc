#include "skein/comm/gloo/proof.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "skein/base/hash.h"

namespace skein {
namespace {

JobSecret::Signature proof_of(const JobSecret& secret, const std::string& world, int from, int to) {
  return secret.sign({"connection", world, std::to_string(from), std::to_string(to)});
}

}  // namespace

Proof::Proof(gloo::transport::Context& context, const JobSecret& secret, const std::string& world,
             int peer)
    : own_(proof_of(secret, world, context.rank, peer)),
      expected_(proof_of(secret, world, peer, context.rank)),
      sent_buffer_(context.createUnboundBuffer(own_.data(), own_.size())),
      received_buffer_(context.createUnboundBuffer(received_.data(), received_.size())) {
  const uint64_t slot = hash_name("the run's secret");
  received_buffer_->recv(peer, slot);
  sent_buffer_->send(peer, slot);
}

bool Proof::is_right(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  received_buffer_->waitRecv(nullptr, std::max(milliseconds(1), left));
  return CRYPTO_memcmp(received_.data(), expected_.data(), expected_.size()) == 0;
}

}  // namespace skein
