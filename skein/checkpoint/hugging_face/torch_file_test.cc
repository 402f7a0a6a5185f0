// testdata/torch/ is made by scripts/goldens/torch_files.py.
#include "skein/checkpoint/hugging_face/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "skein/base/text/json.h"
#include "skein/checkpoint/hugging_face/hugging_face.h"
#include "skein/checkpoint/hugging_face/stored_zip.h"
#include "tests/error_of.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::error_of;
using test::TempFolder;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

const fs::path kData = fs::path(__FILE__).parent_path() / "testdata/torch";

std::string golden() { return read_file(kData / "golden.bin"); }

std::vector<TorchTensor> parse(const std::string& bytes) {
  return parse_torch_file(std::as_bytes(std::span(bytes)), "x.bin");
}

// A folder whose weights are a file of the test data.
class TorchFolder {
 public:
  explicit TorchFolder(const std::string& file) {
    fs::copy(kData / file, folder_ / "pytorch_model.bin");
  }
  HuggingFaceFolder open() const { return HuggingFaceFolder(folder_.path()); }
  std::string error() const {
    return error_of([&] { open(); });
  }

 private:
  TempFolder folder_;
};

std::vector<float> floats(const HuggingFaceFolder& folder, const std::string& name) {
  std::vector<float> values(folder.find(name)->shape.num_elements());
  folder.read(name, DType::kF32, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(TorchFile, ReadsEveryKindOfFloatAsSafetensorsDo) {
  const TorchFolder folder("golden.bin");
  const HuggingFaceFolder read = folder.open();
  for (const char* name : {"ramp.f32", "ramp.bf16", "ramp.f16", "ramp.f64", "parameter"}) {
    EXPECT_EQ(read.find(name)->shape, (Shape{2, 3})) << name;
    EXPECT_THAT(floats(read, name), ElementsAre(-1, -0.5, 0, 0.5, 1, 1.5)) << name;
  }
  EXPECT_THAT(floats(read, "scalar"), ElementsAre(2.5));
  EXPECT_TRUE(floats(read, "empty").empty());
  EXPECT_EQ(read.find("count.i64")->dtype, "I64");
  EXPECT_EQ(read.find("mask.bool")->dtype, "BOOL");
  EXPECT_THAT(floats(read, "attn.masked_bias"), ElementsAre(-1e4));
  EXPECT_EQ(read.tensor_names().size(), 18u);
}

TEST(TorchFile, ReadsStridesAndSharedStorages) {
  const TorchFolder folder("golden.bin");
  const HuggingFaceFolder read = folder.open();
  std::vector<float> matrix(24), transposed, turned;
  std::iota(matrix.begin(), matrix.end(), 0.0f);
  EXPECT_THAT(floats(read, "whole"), ElementsAreArray(matrix));
  EXPECT_THAT(floats(read, "tied"), ElementsAreArray(matrix));
  EXPECT_EQ(read.find("tied")->begin, read.find("whole")->begin);
  for (int col = 0; col < 6; ++col) {
    for (int row = 0; row < 4; ++row) transposed.push_back(matrix[row * 6 + col]);
  }
  EXPECT_EQ(read.find("transposed")->shape, (Shape{6, 4}));
  EXPECT_THAT(floats(read, "transposed"), ElementsAreArray(transposed));
  EXPECT_THAT(floats(read, "columns"), ElementsAre(1, 2, 7, 8, 13, 14, 19, 20));
  EXPECT_THAT(floats(read, "rows"), ElementsAre(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_THAT(floats(read, "every_other"), ElementsAre(0, 3, 12, 15));
  for (int k = 0; k < 4; ++k) {  // [2, 3, 4] as [4, 2, 3]
    for (int ij = 0; ij < 6; ++ij) turned.push_back(static_cast<float>(ij * 4 + k));
  }
  EXPECT_THAT(floats(read, "turned"), ElementsAreArray(turned));
  // A box of what has strides.
  std::vector<float> box(4);
  read.read("transposed", {{1, 2}, {2, 2}}, DType::kF32, std::as_writable_bytes(std::span(box)));
  EXPECT_THAT(box, ElementsAre(13, 19, 14, 20));
}

TEST(TorchFile, ReadsShardsAndTheirIndex) {
  const TempFolder folder;
  fs::copy(kData / "golden.bin", folder / "pytorch_model-00001-of-00002.bin");
  fs::copy(kData / "geometry_good.bin", folder / "pytorch_model-00002-of-00002.bin");
  const auto without_index = HuggingFaceFolder(folder.path());
  EXPECT_THAT(without_index.note(), HasSubstr("pytorch_model.bin.index.json is missing"));
  EXPECT_EQ(without_index.tensor_names().size(), 19u);
  std::ofstream(folder / "pytorch_model.bin.index.json")
      << R"({"weight_map": {"w": "pytorch_model-00002-of-00002.bin",
                            "scalar": "pytorch_model-00001-of-00002.bin"}})";
  const HuggingFaceFolder read(folder.path());
  EXPECT_THAT(read.tensor_names(), ElementsAre("scalar", "w"));
  EXPECT_THAT(floats(read, "scalar"), ElementsAre(2.5));
}

TEST(TorchFile, RunsNoCode) {
  const std::string error = TorchFolder("runs_code.bin").error();
  EXPECT_THAT(error, HasSubstr("os.system, which would run code"));
  EXPECT_THAT(TorchFolder("sparse.bin").error(), HasSubstr("which is no part of a plain tensor"));
  EXPECT_THAT(TorchFolder("complex.bin").error(), HasSubstr("torch.ComplexFloatStorage"));
}

TEST(TorchFile, NamesWhatItIsInstead) {
  const std::string legacy = TorchFolder("legacy.bin").error();
  EXPECT_THAT(legacy, HasSubstr("in the format of torch before 1.6"));
  EXPECT_THAT(legacy, HasSubstr("weights_only=True"));
  EXPECT_THAT(legacy, HasSubstr("model.safetensors"));
  EXPECT_THAT(TorchFolder("training.bin").error(),
              HasSubstr("\"model\" in it is a dictionary, expected tensors alone; its first keys "
                        "are model, step"));
  EXPECT_THAT(TorchFolder("list.bin").error(), HasSubstr("it holds a list, expected a dictionary"));
  EXPECT_THAT(TorchFolder("protocol4.bin").error(), HasSubstr("its protocol is 4, expected 2"));
  EXPECT_THAT(TorchFolder("compressed.bin").error(),
              HasSubstr("archive/data.pkl in it is compressed"));
  EXPECT_THAT(TorchFolder("no_pickle.bin").error(), HasSubstr("holds no data.pkl"));
  EXPECT_THAT(error_of([] { parse("hello, world"); }), HasSubstr("begins with \"hello, world\""));
  EXPECT_THAT(error_of([] { parse(""); }), HasSubstr("not a file of torch.save"));
  EXPECT_THAT(error_of([] {
                parse("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 26\n");
              }),
              HasSubstr("Git LFS pointer"));
}

TEST(TorchFile, RefusesTensorsOutsideTheirStorage) {
  EXPECT_EQ(TorchFolder("geometry_good.bin").error(), "");
  for (const char* name :
       {"past_end", "negative_offset", "far_offset", "long_stride", "wraps_around"}) {
    EXPECT_THAT(TorchFolder(fmt::format("geometry_{}.bin", name)).error(),
                HasSubstr("does not lie in its storage of 4 elements"))
        << name;
  }
  EXPECT_THAT(TorchFolder("geometry_negative_stride.bin").error(), HasSubstr("numbers from 0"));
  for (const char* name : {"expanded", "overlaps"}) {
    EXPECT_THAT(TorchFolder(fmt::format("geometry_{}.bin", name)).error(),
                HasSubstr("reaches elements of its storage twice"))
        << name;
  }
  EXPECT_THAT(TorchFolder("geometry_other_storage_size.bin").error(),
              HasSubstr("has 16 bytes, expected 5 elements of F32"));
}

// Whatever is cut off or changed gives an error that names the file, or tensors inside it.
TEST(TorchFile, SurvivesDamage) {
  const std::string good = golden();
  for (size_t size = 0; size < good.size(); size += 7) {
    const std::string error = error_of([&] { parse(good.substr(0, size)); });
    EXPECT_THAT(error, HasSubstr("x.bin: ")) << size;
  }
  for (size_t i = 0; i < good.size(); i += 3) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      try {
        for (const TorchTensor& tensor : parse(bad)) {
          EXPECT_LE(tensor.entry.begin, tensor.entry.end);
          EXPECT_LE(tensor.entry.end, static_cast<int64_t>(bad.size()));
        }
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("x.bin: "));
      }
    }
  }
}

// The table of a file of more than 4 GiB has its numbers in zip64 records.
TEST(StoredZip, ReadsZip64Records) {
  const auto number = [](uint64_t value, size_t bytes) {
    return std::string(reinterpret_cast<const char*>(&value), bytes);
  };
  const std::string local =
      "PK\x03\x04" + std::string(22, '\0') + number(1, 2) + number(0, 2) + "a" + "data";
  const std::string extra =
      number(1, 2) + number(24, 2) + number(4, 8) + number(4, 8) + number(0, 8);
  const std::string entry = "PK\x01\x02" + std::string(16, '\0') + std::string(8, '\xff') +
                            number(1, 2) + number(extra.size(), 2) + std::string(10, '\0') +
                            std::string(4, '\xff') + "a" + extra;
  const std::string end64 = "PK\x06\x06" + number(44, 8) + std::string(12, '\0') + number(1, 8) +
                            number(1, 8) + number(entry.size(), 8) + number(local.size(), 8);
  const std::string locator =
      "PK\x06\x07" + number(0, 4) + number(local.size() + entry.size(), 8) + number(1, 4);
  const std::string end =
      "PK\x05\x06" + std::string(4, '\0') + std::string(12, '\xff') + number(0, 2);
  const std::string zip = local + entry + end64 + locator + end;
  const auto found = parse_stored_zip(std::as_bytes(std::span(zip)), "x.zip");
  ASSERT_EQ(found.count("a"), 1u);
  EXPECT_EQ(zip.substr(found.at("a").begin, found.at("a").num_bytes()), "data");
  // The same file listed twice.
  const std::string twice = local + entry + entry + "PK\x05\x06" + std::string(4, '\0') +
                            number(2, 2) + number(2, 2) + number(2 * entry.size(), 4) +
                            number(local.size(), 4) + number(0, 2);
  EXPECT_THAT(error_of([&] { parse_stored_zip(std::as_bytes(std::span(twice)), "x.zip"); }),
              HasSubstr("a is there twice"));
}

}  // namespace
}  // namespace skein
