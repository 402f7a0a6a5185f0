#include "skein/store/job_secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"

namespace skein {
namespace {

constexpr const char* kVariable = "SKEIN_JOB_SECRET";
constexpr size_t kNewBytes = 32;
constexpr int64_t kMaxFileBytes = 4096;

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

// Of several that make it at once, the first one's stays.
void make_secret(const fs::path& path) {
  make_folders(path.parent_path());
  const fs::path partial = unique_partial(path);
  std::string text;
  for (const char byte : random_bytes(kNewBytes)) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  {
    const FileDescriptor file = create_new(partial, 0600);
    write_all(file.get(), std::as_bytes(std::span(text)), partial);
    fsync_file(file.get(), partial);
  }
  const auto made = try_run([&] { return name_once(partial, path); });
  ::unlink(partial.c_str());
  if (!made.ok()) throw made.error();
}

FileDescriptor open_secret(const fs::path& path) {
  try {
    return open_to_read(path);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("the run's secret: {}", error.what()));
  }
}

// Modes of the file that the run made itself are the file system's or the administrator's business:
// some force them, and whoever opens a run folder to others means to.
JobSecret read_secret(const fs::path& path, bool is_own) {
  const FileDescriptor file = open_secret(path);
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && !is_own && (status.st_mode & 077) != 0) {
    fail(ErrorCode::kUsage,
         "others can read or change the run's secret {} (mode {:04o}): expected 0600; make another "
         "secret, since this one may be known",
         path.string(), status.st_mode & 07777);
  }
  return JobSecret(trimmed(read_file(file, path, kMaxFileBytes)), path.string());
}

}  // namespace

JobSecret::JobSecret(std::string bytes, std::string source)
    : bytes_(std::move(bytes)), source_(std::move(source)) {
  if (bytes_.size() < kMinBytes) {
    fail(ErrorCode::kUsage,
         "the run's secret of {} has {} bytes: expected at least {}, such as what `openssl rand "
         "-hex 32` prints",
         source_, bytes_.size(), kMinBytes);
  }
}

JobSecret JobSecret::find(const std::string& file, const fs::path& default_file) {
  const char* given = std::getenv(kVariable);
  if (given != nullptr && *given != '\0') return {trimmed(given), kVariable};
  if (!file.empty()) return read_secret(file, /*is_own=*/false);
  if (!is_there(default_file)) make_secret(default_file);
  return read_secret(default_file, /*is_own=*/true);
}

JobSecret::Signature JobSecret::sign(std::initializer_list<std::string_view> parts) const {
  std::string text;
  for (const std::string_view part : parts) {
    for (int shift = 0; shift < 64; shift += 8) {
      text += static_cast<char>(static_cast<uint64_t>(part.size()) >> shift);
    }
    text += part;
  }
  Signature signature;
  unsigned int length = 0;
  const auto* done = HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          reinterpret_cast<unsigned char*>(signature.data()), &length);
  if (done == nullptr || length != signature.size()) {
    fail(ErrorCode::kInternal, "libcrypto cannot compute HMAC-SHA256");
  }
  return signature;
}

bool JobSecret::is_signed(std::string_view signature,
                          std::initializer_list<std::string_view> parts) const {
  const Signature expected = sign(parts);
  return signature.size() == expected.size() &&
         CRYPTO_memcmp(signature.data(), expected.data(), expected.size()) == 0;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    fail(ErrorCode::kInternal, "libcrypto has no random bytes");
  }
  return bytes;
}

}  // namespace skein
