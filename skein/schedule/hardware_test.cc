#include "skein/schedule/hardware.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "skein/base/error.h"
#include "tests/places.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

Hardware example() {
  Hardware h;
  h.name = "a \"node\" \\ with\ttabs, \x7f and é";
  h.devices_per_node = 4;
  h.memory_bytes = 123456789012345;
  h.memory_bytes_per_s = 1.0 / 3 * 1e10;
  h.launch_s = 0;
  h.bf16 = {0.1 * 3e12, 1e13};
  h.f32 = {std::nextafter(1e12, 2e12), 2e12};
  h.intra_node = {4.5e11, 1.1e-6};
  h.inter_node = {5e10, 0};
  h.overlap = 0.3;
  return h;
}

std::string message_of(const std::string& text) {
  try {
    parse_hardware(text, "h.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "no error";
}

// The text of `example` with one part replaced.
std::string with(const std::string& piece, const std::string& replacement) {
  std::string text = hardware_text(example());
  const size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), replacement);
}

TEST(Hardware, TextReadsBackToTheSameBits) {
  EXPECT_EQ(parse_hardware(hardware_text(example()), "h.toml"), example());
  Hardware calibrated = example();
  calibrated.concurrent_devices = 2;
  calibrated.op_factors = {{"attention", 1.0 / 3}, {"rms_norm", 20.5}};
  EXPECT_EQ(parse_hardware(hardware_text(calibrated), "h.toml"), calibrated);
  calibrated.unified_memory = true;
  EXPECT_EQ(parse_hardware(hardware_text(calibrated), "h.toml"), calibrated);
  calibrated.note = "measured \"here\"";
  EXPECT_EQ(parse_hardware(hardware_text(calibrated), "h.toml"), calibrated);
  Hardware with_fp8 = example();
  with_fp8.fp8_flops_per_s = 1.0 / 3 * 1e15;
  EXPECT_EQ(parse_hardware(hardware_text(with_fp8), "h.toml"), with_fp8);
  Hardware with_host = example();
  with_host.host_memory_bytes = 512'000'000'000;
  EXPECT_EQ(parse_hardware(hardware_text(with_host), "h.toml"), with_host);
  Hardware one_node = example();
  one_node.inter_node = {};
  EXPECT_EQ(parse_hardware(hardware_text(one_node), "h.toml"), one_node);
  Hardware one_device = one_node;
  one_device.devices_per_node = 1;
  one_device.intra_node = {};
  EXPECT_EQ(parse_hardware(hardware_text(one_device), "h.toml"), one_device);
}

TEST(Hardware, TheShippedDescriptionsRead) {
  int count = 0;
  for (const auto& entry :
       fs::directory_iterator(std::string(kSourceFolder) + "/configs/hardware")) {
    const Hardware h = load_hardware(entry.path());
    EXPECT_EQ(parse_hardware(hardware_text(h), "again"), h);
    EXPECT_GT(h.inter_node.bytes_per_s, 0) << entry.path();
    EXPECT_LE(h.bf16.flops_per_s, h.bf16.peak_flops_per_s);
    ++count;
  }
  EXPECT_GE(count, 3);
  const Hardware trn1 =
      load_hardware(std::string(kSourceFolder) + "/configs/hardware/trn1-32xlarge.toml");
  EXPECT_DOUBLE_EQ(trn1.bf16.peak_flops_per_s * static_cast<double>(trn1.devices_per_node),
                   3040e12);
  const Hardware h200 =
      load_hardware(std::string(kSourceFolder) + "/configs/hardware/h200-8x.toml");
  EXPECT_EQ(h200.memory_bytes, 141000000000);
  EXPECT_EQ(h200.matmul(DType::kBF16), h200.bf16);
  EXPECT_EQ(h200.matmul(DType::kF32), h200.f32);
}

TEST(Hardware, ErrorsNameLineKeyAndWhatWasMeant) {
  EXPECT_EQ(message_of(with("overlap", "overlp")),
            "h.toml:26: unknown key of [communication] overlp: did you mean overlap?");
  EXPECT_EQ(message_of(with("[inter_node]", "[inter_nodes]")),
            "h.toml:21: unknown section inter_nodes: did you mean inter_node?");
  EXPECT_EQ(message_of(with("devices_per_node", "devices_per_nodes")),
            "h.toml:2: unknown key devices_per_nodes: did you mean devices_per_node?");
  EXPECT_EQ(message_of(with("devices_per_node = 4", "")),
            "h.toml: devices_per_node is missing: add it to the top of the file");
  EXPECT_EQ(message_of(with("launch_s = 0", "")),
            "h.toml: device.launch_s is missing: add it to [device]");
  EXPECT_EQ(message_of(with("devices_per_node = 4", "devices_per_node = 1.5")),
            "h.toml:2: devices_per_node: expected a whole number from 1");
  EXPECT_EQ(message_of(with("overlap = 0.3", "overlap = 1.5")),
            "h.toml:26: communication.overlap: expected a number from 0 to 1");
  EXPECT_EQ(message_of(with("flops_per_s = 300000000000", "flops_per_s = 300000000000000")),
            "h.toml: bf16.flops_per_s is 3e+14, above bf16.peak_flops_per_s, which is 1e+13: the "
            "first is the rate that is reached");
  const std::string top = "devices_per_node = 4\n";
  EXPECT_EQ(message_of(with(top, top + "note = 3\n")),
            "h.toml:3: note: expected a string in quotes");
  EXPECT_EQ(message_of(with(top, top + "unified_memory = 1\n")),
            "h.toml:3: unified_memory: expected true or false");
  EXPECT_NE(message_of(with(top, top + "unified_memory = true\nhost_memory_bytes = 1e12\n"))
                .find("expected one of them"),
            std::string::npos);
  EXPECT_NE(message_of("bf16 = 3\n").find("bf16 is a section"), std::string::npos);
  EXPECT_NE(message_of("name = \n").find("not valid TOML"), std::string::npos);
  EXPECT_NE(message_of("").find("name is missing"), std::string::npos);
}

TEST(Hardware, NumbersThatAreNoneAreRefused) {
  for (const char* value :
       {"nan", "inf", "-1", "\"5\"", "true", "[1]", "1979-05-27", "-0.0", "0"}) {
    EXPECT_NE(message_of(with("bytes_per_s = 450000000000", std::string("bytes_per_s = ") + value))
                  .find("intra_node.bytes_per_s: expected a number above 0"),
              std::string::npos)
        << value;
    EXPECT_NE(
        message_of(with("memory_bytes = 123456789012345", std::string("memory_bytes = ") + value))
            .find("device.memory_bytes: expected a whole number from 1"),
        std::string::npos)
        << value;
  }
  EXPECT_NE(message_of(with("memory_bytes = 123456789012345", "memory_bytes = 1e30"))
                .find("expected a whole number"),
            std::string::npos);
}

TEST(Hardware, MissingAndOversizedFiles) {
  try {
    load_hardware("/nonexistent/h.toml");
    FAIL() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("/nonexistent/h.toml"), std::string::npos);
  }
  const fs::path path = fs::path(testing::TempDir()) / "skein_large_hardware.toml";
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  EXPECT_THROW(load_hardware(path), Error);
  fs::remove(path);
}

}  // namespace
}  // namespace skein
