#include "skein/schedule/hardware.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <variant>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/nearest.h"
#include "skein/base/text/toml.h"

namespace skein {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 20;

constexpr std::string_view kOps = "ops";  // a section with free keys

enum class AllowedNumbers { kPositive, kNotNegative, kShare };

// A key of the file, and the value that it sets.
struct HardwareKey {
  std::string_view section;  // "": before the first section
  std::string_view key;
  std::variant<std::string*, int64_t*, double*, bool*> value;
  AllowedNumbers range = AllowedNumbers::kPositive;
  bool optional = false;
};

std::vector<HardwareKey> fields_of(Hardware& h) {
  return {
      {"", "name", &h.name},
      {"", "note", &h.note, AllowedNumbers::kPositive, true},
      {"", "devices_per_node", &h.devices_per_node},
      {"", "concurrent_devices", &h.concurrent_devices, AllowedNumbers::kPositive, true},
      {"", "host_memory_bytes", &h.host_memory_bytes, AllowedNumbers::kPositive, true},
      {"", "unified_memory", &h.unified_memory, AllowedNumbers::kPositive, true},
      {"device", "kind", &h.device_kind, AllowedNumbers::kPositive, true},
      {"device", "memory_bytes", &h.memory_bytes},
      {"device", "memory_bytes_per_s", &h.memory_bytes_per_s},
      {"device", "launch_s", &h.launch_s, AllowedNumbers::kNotNegative},
      {"bf16", "flops_per_s", &h.bf16.flops_per_s},
      {"bf16", "peak_flops_per_s", &h.bf16.peak_flops_per_s},
      {"f32", "flops_per_s", &h.f32.flops_per_s},
      {"f32", "peak_flops_per_s", &h.f32.peak_flops_per_s},
      {"fp8", "flops_per_s", &h.fp8_flops_per_s, AllowedNumbers::kPositive, true},
      {"intra_node", "bytes_per_s", &h.intra_node.bytes_per_s},
      {"intra_node", "latency_s", &h.intra_node.latency_s, AllowedNumbers::kNotNegative},
      {"inter_node", "bytes_per_s", &h.inter_node.bytes_per_s},
      {"inter_node", "latency_s", &h.inter_node.latency_s, AllowedNumbers::kNotNegative},
      {"communication", "overlap", &h.overlap, AllowedNumbers::kShare, true},
  };
}

// Whether a section may be left out: a single node needs no inter_node link, and a single device no
// intra_node link.
bool may_be_absent(std::string_view section, const Hardware& hardware) {
  return section == "inter_node" || (section == "intra_node" && hardware.devices_per_node == 1);
}

std::string full_name(const HardwareKey& field) {
  return field.section.empty() ? std::string(field.key)
                               : fmt::format("{}.{}", field.section, field.key);
}

bool in_range(double value, AllowedNumbers range) {
  if (!std::isfinite(value)) return false;
  if (range == AllowedNumbers::kShare) return value >= 0 && value <= 1;
  return range == AllowedNumbers::kPositive ? value > 0 : value >= 0;
}

std::string_view describe(AllowedNumbers range) {
  switch (range) {
    case AllowedNumbers::kPositive:
      return "above 0";
    case AllowedNumbers::kNotNegative:
      return "from 0";
    case AllowedNumbers::kShare:
      return "from 0 to 1";
  }
  return "";
}

std::string line_of(const toml::node& node, const std::string& file) {
  return fmt::format("{}:{}", file, node.source().begin.line);
}

// Stores one value, or throws saying what was expected.
struct KeySetter {
  const toml::node& node;
  const HardwareKey& field;
  const std::string& file;

  void operator()(std::string* target) const {
    const auto* value = node.as_string();
    if (!value || value->get().empty()) refuse("a string in quotes");
    *target = value->get();
  }
  void operator()(int64_t* target) const {
    constexpr double kLargest = 9007199254740992;  // 2^53: up to here a double is exact
    const double value = number();
    if (!(value >= 1 && value <= kLargest && value == std::floor(value)))
      refuse("a whole number from 1");
    *target = static_cast<int64_t>(value);
  }
  void operator()(double* target) const {
    const double value = number();
    if (!in_range(value, field.range)) refuse(fmt::format("a number {}", describe(field.range)));
    *target = value;
  }
  void operator()(bool* target) const {
    const auto* value = node.as_boolean();
    if (!value) refuse("true or false");
    *target = value->get();
  }

 private:
  double number() const {
    if (!node.is_integer() && !node.is_floating_point()) return std::nan("");
    return *node.value<double>();
  }
  [[noreturn]] void refuse(const std::string& expected) const {
    fail(ErrorCode::kUsage, "{}: {}: expected {}", line_of(node, file), full_name(field), expected);
  }
};

[[noreturn]] void refuse_unknown(const std::string& where, std::string_view what,
                                 std::string_view name, std::span<const std::string_view> known) {
  const std::string_view nearest = nearest_name(name, known);
  if (!nearest.empty())
    fail(ErrorCode::kUsage, "{}: unknown {} {}: did you mean {}?", where, what, name, nearest);
  fail(ErrorCode::kUsage, "{}: unknown {} {}: expected one of {}", where, what, name,
       fmt::join(known, ", "));
}

void check_names(const toml::table& document, std::span<const HardwareKey> fields,
                 const std::string& file) {
  const auto keys_of = [&](std::string_view section) {
    std::vector<std::string_view> keys;
    for (const HardwareKey& field : fields) {
      if (field.section == section) keys.push_back(field.key);
    }
    return keys;
  };
  std::vector<std::string_view> top = keys_of("");
  for (const HardwareKey& field : fields) {
    if (!field.section.empty() && top.back() != field.section) top.push_back(field.section);
  }
  top.push_back(kOps);
  for (const auto& [name, node] : document) {
    const std::vector<std::string_view> own = keys_of(name.str());
    if (std::find(top.begin(), top.end(), name.str()) == top.end())
      refuse_unknown(line_of(node, file), node.is_table() ? "section" : "key", name.str(), top);
    if (own.empty()) continue;
    const toml::table* section = node.as_table();
    if (!section) {
      fail(ErrorCode::kUsage, "{}: {} is a section: expected a line [{}]", line_of(node, file),
           name.str(), name.str());
    }
    for (const auto& [key, value] : *section) {
      if (std::find(own.begin(), own.end(), key.str()) == own.end()) {
        refuse_unknown(line_of(value, file), fmt::format("key of [{}]", name.str()), key.str(),
                       own);
      }
    }
  }
}

void read_op_factors(const toml::table& document, Hardware& hardware, const std::string& file) {
  const toml::node* node = document.get(kOps);
  if (node == nullptr) return;
  if (!node->is_table()) {
    fail(ErrorCode::kUsage, "{}: {} is a section: expected a line [{}]", line_of(*node, file), kOps,
         kOps);
  }
  for (const auto& [key, value] : *node->as_table()) {
    const HardwareKey field{kOps, key.str(), &hardware.op_factors[std::string(key.str())]};
    std::visit(KeySetter{value, field, file}, field.value);
  }
}

void check_memory(const Hardware& hardware, const std::string& file) {
  if (hardware.unified_memory && hardware.host_memory_bytes > 0) {
    fail(ErrorCode::kUsage,
         "{}: host_memory_bytes and unified_memory: expected one of them; where devices use the "
         "host's memory, device.memory_bytes is a device's share of it",
         file);
  }
}

void check_peaks(const Hardware& hardware, const std::string& file) {
  for (const auto& [name, rate] :
       {std::pair{"bf16", hardware.bf16}, std::pair{"f32", hardware.f32}}) {
    if (rate.flops_per_s > rate.peak_flops_per_s) {
      fail(ErrorCode::kUsage,
           "{}: {}.flops_per_s is {:g}, above {}.peak_flops_per_s, which is {:g}: the first is the "
           "rate that is reached",
           file, name, rate.flops_per_s, name, rate.peak_flops_per_s);
    }
  }
}

std::string toml_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + '"';
}

struct Print {
  std::string operator()(const std::string* value) const { return toml_string(*value); }
  std::string operator()(const int64_t* value) const { return fmt::format("{}", *value); }
  std::string operator()(const double* value) const { return fmt::format("{}", *value); }
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
};

}  // namespace

Hardware parse_hardware(std::string_view text, const std::string& name) {
  const toml::table document = parse_toml(text, name);
  Hardware hardware;
  const std::vector<HardwareKey> fields = fields_of(hardware);
  check_names(document, fields, name);
  for (const HardwareKey& field : fields) {
    const toml::table* section =
        field.section.empty() ? &document : document.get_as<toml::table>(field.section);
    if (const toml::node* node = section ? section->get(field.key) : nullptr) {
      std::visit(KeySetter{*node, field, name}, field.value);
    } else if (!field.optional && (section || !may_be_absent(field.section, hardware))) {
      fail(ErrorCode::kUsage, "{}: {} is missing: add it to {}", name, full_name(field),
           field.section.empty() ? "the top of the file" : fmt::format("[{}]", field.section));
    }
  }
  read_op_factors(document, hardware, name);
  check_peaks(hardware, name);
  check_memory(hardware, name);
  return hardware;
}

Hardware load_hardware(const fs::path& path) {
  std::string text;
  try {
    text = read_file(path, kMaxFileBytes);
  } catch (const Error& error) {  // a wrong command line, as with a configuration
    fail(ErrorCode::kUsage,
         "hardware: {}: expected the path of a description, such as configs/hardware/h100-8x.toml, "
         "h200-8x.toml or trn1-32xlarge.toml there",
         error.what());
  }
  return parse_hardware(text, path.string());
}

std::string hardware_text(const Hardware& hardware) {
  Hardware copy = hardware;
  std::string text, last_section;
  for (const HardwareKey& field : fields_of(copy)) {
    const bool no_link = (field.section == "inter_node" && copy.inter_node.bytes_per_s == 0) ||
                         (field.section == "intra_node" && copy.intra_node.bytes_per_s == 0);
    // Keys with their default value are left out.
    const bool unsaid = (field.key == "note" && copy.note.empty()) ||
                        (field.key == "concurrent_devices" && copy.concurrent_devices == 0) ||
                        (field.key == "kind" && copy.device_kind.empty()) ||
                        (field.section == "fp8" && copy.fp8_flops_per_s == 0) ||
                        (field.key == "host_memory_bytes" && copy.host_memory_bytes == 0) ||
                        (field.key == "unified_memory" && !copy.unified_memory);
    if (no_link || unsaid) continue;
    if (field.section != last_section) text += fmt::format("\n[{}]\n", field.section);
    last_section = field.section;
    text += fmt::format("{} = {}\n", field.key, std::visit(Print{}, field.value));
  }
  if (!copy.op_factors.empty()) text += fmt::format("\n[{}]\n", kOps);
  for (const auto& [op, factor] : copy.op_factors) {
    text += fmt::format("{} = {}\n", toml_string(op), factor);
  }
  return text;
}

}  // namespace skein
