#include "skein/comm/gloo/proof.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "skein/base/numbers/hash.h"

namespace skein {
namespace {

JobSecret::Signature proof_of(const JobSecret& secret, const std::string& world, int from, int to,
                              bool reads_memory) {
  return secret.sign({"connection", world, std::to_string(from), std::to_string(to),
                      reads_memory ? "memory" : "network"});
}

bool are_equal(const JobSecret::Signature& a, const JobSecret::Signature& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Proof::Proof(gloo::transport::Context& context, const JobSecret& secret, const std::string& world,
             int peer, bool reads_memory)
    : own_(proof_of(secret, world, context.rank, peer, reads_memory)),
      expected_(proof_of(secret, world, peer, context.rank, false)),
      expected_of_reader_(proof_of(secret, world, peer, context.rank, true)),
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
  return are_equal(received_, expected_) || peer_reads_memory();
}

bool Proof::peer_reads_memory() const { return are_equal(received_, expected_of_reader_); }

}  // namespace skein
