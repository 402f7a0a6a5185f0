// What the tests of ingestion share: a folder, and files written into it in every wrapping.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/data/corpus/corpus.h"
#include "skein/prepare/ingest.h"
#include "tests/error_of.h"
#include "tests/places.h"

namespace skein {

using Documents = std::vector<std::string>;

const fs::path kCorpusGoldens = fs::path(kSourceFolder) / "skein/data/corpus/testdata";

class Ingest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        fmt::format("ingest-{}-{}", testing::UnitTest::GetInstance()->current_test_info()->name(),
                    ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, std::string_view bytes) {
    fs::create_directories((folder_ / name).parent_path());
    write_file_atomic(folder_ / name, bytes);
    return folder_ / name;
  }
  fs::path out() const { return folder_ / "out.arrow"; }

  Documents ingested(const std::vector<fs::path>& inputs, IngestOptions options = {}) {
    options.overwrite = true;
    report_ = ingest(inputs, out(), options);
    return documents(out());
  }
  static Documents documents(const fs::path& path) {
    const Corpus corpus(path);
    Documents documents;
    for (int64_t i = 0; i < corpus.num_documents(); ++i)
      documents.push_back(corpus.document(i).str());
    return documents;
  }
  std::string error_of(const std::vector<fs::path>& inputs, IngestOptions options = {}) {
    options.overwrite = true;
    return test::error_of([&] { ingest(inputs, out(), options); });
  }

  fs::path folder_;
  IngestReport report_;
};

inline std::string gzip(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string zstd(std::string_view text, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (window_log > 0) {
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  }
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  // In two parts, so that the window is not fitted to the size.
  ZSTD_inBuffer input{text.data(), text.size() / 2, 0};
  ZSTD_compressStream2(context, &output, &input, ZSTD_e_continue);
  input.size = text.size();
  while (ZSTD_compressStream2(context, &output, &input, ZSTD_e_end) != 0) {
  }
  out.resize(output.pos);
  ZSTD_freeCCtx(context);
  return out;
}

}  // namespace skein
