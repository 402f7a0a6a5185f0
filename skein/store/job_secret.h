// The secret of a run, which every machine of it knows and nobody else: what is signed with it was
// written by the run itself.
//
//   signature = HMAC-SHA256(secret, length and bytes of each part, one after another)
//
// Where it comes from, in this order: SKEIN_JOB_SECRET; launch.secret_file; the file `secret` that
// the first process of the run makes where it looks by default, readable for its user alone.
// Errors  Error{kUsage}: too short, or a file that others can read; Error{kIo}, Error{kNotFound}
// Source  RFC 2104; FIPS 180-4. OpenSSL's libcrypto
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "skein/base/files/file.h"

namespace skein {

class JobSecret {
 public:
  using Signature = std::array<char, 32>;

  // At least kMinBytes. `source`: for people, "SKEIN_JOB_SECRET".
  JobSecret(std::string bytes, std::string source);

  // `file`: launch.secret_file, which must be there; empty: `default_file`, made where it is not.
  static JobSecret find(const std::string& file, const fs::path& default_file);

  Signature sign(std::initializer_list<std::string_view> parts) const;
  // Takes as long for a wrong signature as for a right one.
  bool is_signed(std::string_view signature, std::initializer_list<std::string_view> parts) const;
  const std::string& source() const { return source_; }

  static constexpr size_t kMinBytes = 16;

 private:
  std::string bytes_, source_;
};

// Bytes that nobody can guess.
std::string random_bytes(size_t count);

}  // namespace skein
