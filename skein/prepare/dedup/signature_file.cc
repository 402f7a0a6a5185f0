#include "skein/prepare/dedup/signature_file.h"

#include <system_error>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"

namespace skein {
namespace {

static_assert(sizeof(SignatureHeader) == 56);

constexpr size_t kResidentBytes = size_t{8} << 20;  // of the mapped file, a thread
constexpr size_t kHeaderWords = sizeof(SignatureHeader) / sizeof(uint64_t);

fs::path signatures_of(fs::path stem) { return stem += ".signatures"; }
fs::path record_of(fs::path stem) { return stem += ".signatures.json"; }

}  // namespace

SignatureFile::SignatureFile(const fs::path& stem) : stem_(stem), file_(signatures_of(stem)) {}

void SignatureFile::append(std::span<const uint64_t> records, uint64_t num_documents) {
  file_.append({reinterpret_cast<const char*>(records.data()), records.size_bytes()});
  num_documents_ += num_documents;
}

void SignatureFile::finish(const Json& key) {
  const std::string hash = file_.finish();
  write_file_atomic(record_of(stem_), json_text(Json{{"key", key},
                                                     {"documents", num_documents_},
                                                     {"bytes", file_.num_bytes()},
                                                     {"xxh3", hash}}));
}

bool has_signatures(const fs::path& stem, const Json& key, uint64_t num_documents) {
  std::error_code error;
  if (!fs::exists(record_of(stem), error)) return false;
  try {
    const Json record = read_json(record_of(stem).string());
    return record.at("key") == key && record.at("documents").get<uint64_t>() == num_documents &&
           record.at("bytes").get<uint64_t>() == fs::file_size(signatures_of(stem)) &&
           record.at("xxh3").get<std::string>() == hash_of_file(signatures_of(stem));
  } catch (const std::exception&) {  // whatever it is, it is none of ours
    return false;
  }
}

void read_signatures(const fs::path& stem, uint64_t num_documents,
                     const std::function<void(const DocumentSignature&)>& visit) {
  const MappedFile file(signatures_of(stem));
  const auto bytes = file.bytes();
  const std::span words(reinterpret_cast<const uint64_t*>(bytes.data()),
                        bytes.size() / sizeof(uint64_t));
  size_t at = 0, forgotten = 0, num_read = 0;
  while (words.size() - at >= kHeaderWords) {
    const auto& header = *reinterpret_cast<const SignatureHeader*>(&words[at]);
    at += kHeaderWords;
    if (words.size() - at < size_t{header.num_band_keys} + header.num_passages) break;
    const auto keys = words.subspan(at, header.num_band_keys);
    const auto passages = words.subspan(at + keys.size(), header.num_passages);
    at += keys.size() + passages.size();
    if (++num_read > num_documents) break;
    visit({header, keys, passages});
    if (at * sizeof(uint64_t) - forgotten > kResidentBytes) {
      file.forget(bytes.subspan(forgotten, at * sizeof(uint64_t) - forgotten));
      forgotten = at * sizeof(uint64_t);
    }
  }
  if (num_read == num_documents && at * sizeof(uint64_t) == bytes.size()) return;
  fail(ErrorCode::kCorrupt, "{}: damaged: expected the signatures of {} documents: remove it",
       file.path().string(), num_documents);
}

}  // namespace skein
