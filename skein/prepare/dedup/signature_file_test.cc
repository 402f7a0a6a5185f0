#include "skein/prepare/dedup/signature_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "tests/error_of.h"

namespace skein {
namespace {

class SignatureFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / fmt::format("signatures-{}", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(uint64_t num_documents) {
    SignatureFile file(stem());
    for (uint64_t i = 0; i < num_documents; ++i) {
      SignatureHeader header;
      header.entry.num_bytes = i;
      header.num_band_keys = static_cast<uint32_t>(i % 3);
      header.num_passages = static_cast<uint32_t>(i % 5);
      std::vector<uint64_t> record(sizeof(header) / 8);
      std::memcpy(record.data(), &header, sizeof(header));
      for (uint64_t key = 0; key < i % 3 + i % 5; ++key) record.push_back(100 * i + key);
      file.append(record, 1);
    }
    EXPECT_FALSE(has_signatures(stem(), key_, num_documents));  // not finished
    file.finish(key_);
  }
  uint64_t num_read(uint64_t num_documents) {
    uint64_t i = 0;
    read_signatures(stem(), num_documents, [&](const DocumentSignature& signature) {
      EXPECT_EQ(signature.header.entry.num_bytes, i);
      EXPECT_EQ(signature.band_keys.size(), i % 3);
      EXPECT_EQ(signature.passages.size(), i % 5);
      for (const uint64_t key : signature.band_keys) EXPECT_EQ(key / 100, i);
      if (!signature.passages.empty()) {
        EXPECT_EQ(signature.passages.back(), 100 * i + i % 3 + i % 5 - 1);
      }
      ++i;
    });
    return i;
  }
  fs::path stem() const { return folder_ / "piece"; }
  fs::path file() const { return folder_ / "piece.signatures"; }

  fs::path folder_;
  const Json key_ = {{"bands", 14}};
};

TEST_F(SignatureFiles, GiveBackWhatWasWritten) {
  for (const uint64_t num_documents : {0, 1, 50'000}) {
    write(num_documents);
    EXPECT_TRUE(has_signatures(stem(), key_, num_documents));
    EXPECT_EQ(num_read(num_documents), num_documents);
    EXPECT_FALSE(has_signatures(stem(), key_, num_documents + 1));
    EXPECT_FALSE(has_signatures(stem(), {{"bands", 15}}, num_documents));
    fs::remove(folder_ / "piece.signatures.json");
  }
}

TEST_F(SignatureFiles, AreNoneWhereAByteIsOther) {
  write(100);
  const std::string whole = read_file(file());
  for (size_t at = 0; at < whole.size(); at += 97) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    write_file_atomic(file(), damaged);
    EXPECT_FALSE(has_signatures(stem(), key_, 100));
  }
  write_file_atomic(folder_ / "piece.signatures.json", "{");
  EXPECT_FALSE(has_signatures(stem(), key_, 100));
}

// Damage that comes later is an error, and nothing outside the file is read.
TEST_F(SignatureFiles, DamageIsAnError) {
  write(100);
  const std::string whole = read_file(file());
  for (size_t size = 0; size < whole.size(); size += 61) {
    write_file_atomic(file(), whole.substr(0, size));
    EXPECT_NE(test::error_of([&] { num_read(100); }).find("damaged"), std::string::npos);
  }
  std::string huge = whole;
  std::memset(huge.data() + 48, 0xff, 8);  // the counts of the first record
  write_file_atomic(file(), huge);
  EXPECT_NE(test::error_of([&] { num_read(100); }).find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace skein
