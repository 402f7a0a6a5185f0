// What ingestion writes where, what it refuses to replace, and where it cuts documents.
#include <arrow/util/utf8.h>
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "skein/base/files/lost_pages.h"
#include "skein/prepare/dealer.h"
#include "skein/prepare/read/readers.h"
#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class IngestOutput : public Ingest {
 protected:
  // The message and code with which ingest() refuses.
  std::pair<std::string, ErrorCode> refusal(const fs::path& out, const IngestOptions& options) {
    try {
      ingest({write("in.txt", "text\nmore\n")}, out, options);
    } catch (const Error& error) {
      return {error.what(), error.code()};
    }
    return {"", ErrorCode::kInternal};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

// Cuts the file that is read.
class CuttingWorker : public PieceWorker {
 public:
  explicit CuttingWorker(fs::path file) : file_(std::move(file)) {}
  void add(const InputDocument& document, PieceOutput& out) override {
    if (document.origin.record == 10) fs::resize_file(file_, 9000);
    out.append(document.text, document.origin);
  }

 private:
  fs::path file_;
};

// Root may read everything; this thread, and those that it starts, may not.
class NoPrivilege {
 public:
  NoPrivilege() {
    if (::syscall(SYS_capget, &header_, before_) != 0) ADD_FAILURE() << "capget: " << errno;
    __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3] = {before_[0], before_[1]};
    now[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
    if (::syscall(SYS_capset, &header_, now) != 0) ADD_FAILURE() << "capset: " << errno;
  }
  ~NoPrivilege() { ::syscall(SYS_capset, &header_, before_); }
  NoPrivilege(const NoPrivilege&) = delete;
  NoPrivilege& operator=(const NoPrivilege&) = delete;

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[_LINUX_CAPABILITY_U32S_3] = {};
};

TEST_F(IngestOutput, ReplacesNothingUnasked) {
  write("out.arrow", "precious");
  write("val.arrow", "precious, too");
  const auto [message, code] = refusal(out(), {});
  EXPECT_THAT(message, AllOf(HasSubstr("--out"), HasSubstr("exists"), HasSubstr("--overwrite")));
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(refusal(folder_ / "new.arrow", {.validation_out = folder_ / "val.arrow"}).first,
              AllOf(HasSubstr("--validation-out"), HasSubstr("exists")));
  EXPECT_EQ(read_file(out()), "precious");
  EXPECT_EQ(refusal(out(), {.overwrite = true}).first, "");
  EXPECT_EQ(documents(out()), Documents{"text\nmore\n"});
  EXPECT_THAT(names(), ElementsAre("in.txt", "out.arrow", "out.arrow.sources", "val.arrow"));
}

TEST_F(IngestOutput, WritesNoFileTwice) {
  for (const IngestOptions& options :
       {IngestOptions{.validation_out = folder_ / "out.arrow.sources"},
        IngestOptions{.validation_out = folder_ / "new/../out.arrow"},
        IngestOptions{.also_written = {out()}},
        IngestOptions{.validation_out = folder_ / "val.arrow",
        .also_written = {folder_ / "val.arrow.sources"}}}) {
    EXPECT_THAT(refusal(out(), options).first, HasSubstr("would be written twice"));
  }
  EXPECT_THAT(names(), ElementsAre("in.txt"));
}

TEST_F(IngestOutput, WhatIsWrittenBesideIsNoInput) {
  write("in/a.txt", "a");
  write("in/report.html", "<!doctype html>");
  const IngestOptions options{.also_written = {folder_ / "in/report.html"}};
  EXPECT_EQ(ingested({folder_ / "in"}, options), Documents{"a"});
  EXPECT_THAT(report_.passed_over, ElementsAre(HasSubstr("report.html: the output")));
  EXPECT_THAT(error_of({folder_ / "in/report.html"}, options),
              HasSubstr("report.html: an input, and what is to be written as well"));
}

TEST_F(IngestOutput, AnInputThatIsCutWhileItIsReadIsAnErrorAndNoSignal) {
  const LostPages lost;
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += fmt::format("{{\"text\": \"document {}\"}}\n", i);
  ingested({write("a.jsonl", lines)});
  EXPECT_THAT(test::error_of([&] {
                read_documents(out(), {}, [&](std::string_view, int64_t record) {
                  if (record == 10) fs::resize_file(out(), 9000);
                });
              }),
              HasSubstr("out.arrow: the file became shorter while it was read"));
  ingested({folder_ / "a.jsonl"});
  IngestOptions cuts{.overwrite = true};  // in the threads of an ingestion
  cuts.step.make_worker = [this] { return std::make_unique<CuttingWorker>(out()); };
  EXPECT_THAT(test::error_of([&] { ingest({out()}, folder_ / "other.arrow", cuts); }),
              HasSubstr("out.arrow: the file became shorter while it was read"));
  EXPECT_FALSE(fs::exists(folder_ / "other.arrow"));
}

TEST_F(IngestOutput, WantsTheNameOfAFile) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  for (const char* name : {"", ".", "..", "./", "new/", "/"}) {
    const auto [message, code] = refusal(name, {.overwrite = true});
    EXPECT_THAT(message, AllOf(HasSubstr("--out"), HasSubstr("expected the name of a file")))
        << name;
    EXPECT_EQ(code, ErrorCode::kUsage) << name;
  }
  const auto [message, code] = refusal("in.txt/corpus.arrow", {});
  EXPECT_THAT(message, HasSubstr("--out in.txt/corpus.arrow"));
  EXPECT_EQ(code, ErrorCode::kUsage);
  fs::current_path(before);
  EXPECT_THAT(names(), ElementsAre("in.txt"));
}

TEST_F(IngestOutput, TouchesNobodysFiles) {
  for (const char* name :
       {"out.arrow.partial", "out.arrow.text.partial", "out.arrow.offsets.partial"}) {
    write(name, "another program's");
  }
  ASSERT_EQ(refusal(out(), {}).first, "");
  EXPECT_EQ(documents(out()), Documents{"text\nmore\n"});
  for (const char* name :
       {"out.arrow.partial", "out.arrow.text.partial", "out.arrow.offsets.partial"}) {
    EXPECT_EQ(read_file(folder_ / name), "another program's") << name;
  }
  EXPECT_EQ(names().size(), 6u);
}

TEST_F(IngestOutput, AFractionNeedsAFile) {
  const auto [message, code] = refusal(out(), {.validation_fraction = 0.1});
  EXPECT_THAT(message, HasSubstr("nothing is held out without --validation-out"));
  EXPECT_EQ(code, ErrorCode::kUsage);
}

TEST_F(IngestOutput, FractionsAtTheEdgesKeepEveryByte) {
  std::string ascii, wide;
  while (ascii.size() < (1u << 20) + 3) ascii += "0123456789";
  while (wide.size() < (1u << 20) + 3) wide += "漢";
  for (const std::string& text : {ascii, wide, std::string("漢字"), std::string("ab")}) {
    for (const double fraction : {1e-300, 1e-18, 1e-9, 1e-6, 0.5, 0.999999, 1 - 0x1p-53}) {
      IngestOptions options{.validation_out = folder_ / "val.arrow",
                            .validation_fraction = fraction};
      // For the largest documents the outcome depends on whether the hash of document 0 is below
      // the fraction.
      const std::string error = error_of({write("in.txt", text)}, options);
      if (!error.empty()) {
        EXPECT_THAT(error, HasSubstr("leave nothing for training"));
        EXPECT_GT(fraction, 0.4);
        continue;
      }
      const Documents training = documents(out()), held = documents(options.validation_out.path());
      ASSERT_EQ(training.size(), 1u);
      ASSERT_EQ(held.size(), 1u) << fraction;
      EXPECT_EQ(training[0] + held[0], text) << fraction;
      arrow::util::InitializeUTF8();
      EXPECT_TRUE(arrow::util::ValidateUTF8(training[0])) << fraction;
      EXPECT_FALSE(held[0].empty() || training[0].empty()) << fraction;
    }
  }
  const fs::path one = write("in.txt", "漢");
  EXPECT_THAT(error_of({one}, {.validation_out = folder_ / "v"}), HasSubstr("leave nothing for"));
}

TEST(CutNear, StaysBetweenCharactersAndInside) {
  for (const std::string text : {"ab", "漢字", "a漢", "漢a", "é\n字\n", "\n\n"}) {
    for (size_t position = 0; position <= text.size() + 2; ++position) {
      const auto cut = cut_near(text, position);
      ASSERT_TRUE(cut.has_value()) << text << " " << position;
      EXPECT_GT(*cut, 0u);
      EXPECT_LT(*cut, text.size());
      EXPECT_NE(static_cast<uint8_t>(text[*cut]) & 0xc0, 0x80) << text << " " << position;
    }
  }
  for (const std::string text : {"", "a", "漢"}) EXPECT_FALSE(cut_near(text, 1)) << text;
}

TEST_F(IngestOutput, ErrorsOfTheFileSystemNameThePath) {
  fs::create_symlink(folder_ / "loop", folder_ / "loop");
  const std::string long_name(300, 'n');
  EXPECT_THAT(error_of({folder_ / "loop"}), HasSubstr("cannot read " + folder_.string() + "/loop"));
  EXPECT_THAT(error_of({folder_ / long_name}), HasSubstr("File name too long"));
  write("in/closed/a.txt", "text");
  fs::permissions(folder_ / "in/closed", fs::perms::none);
  const NoPrivilege no_privilege;
  for (const char* input : {"in", "in/closed", "in/closed/a.txt"}) {
    const std::string error = error_of({folder_ / input});
    EXPECT_THAT(error, AllOf(HasSubstr("cannot read"), HasSubstr("in/closed"),
                             HasSubstr("Permission denied")));
  }
  fs::permissions(folder_ / "in/closed", fs::perms::owner_all);  // so that it can be removed
}

}  // namespace
}  // namespace skein
