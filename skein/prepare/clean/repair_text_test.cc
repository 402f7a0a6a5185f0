#include "skein/prepare/clean/repair_text.h"

#include <gtest/gtest.h>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/prepare/clean/personal_data.h"
#include "tests/places.h"

namespace skein {
namespace {

Json goldens(const char* name) {
  return Json::parse(read_file(fs::path(kSourceFolder) / "skein/prepare/clean/testdata" / name));
}

std::string repair(std::string_view text) {
  std::string repaired;
  return std::string(repair_text(text, repaired));
}

std::string replace(std::string_view text, const PersonalData& what) {
  PersonalDataCounts counts;
  std::string changed;
  return std::string(replace_personal_data(text, what, counts, changed));
}

TEST(RepairText, DoesAsFtfy) {
  for (const Json& golden : goldens("repairs.json")) {
    EXPECT_EQ(repair(golden["text"].get<std::string>()), golden["repaired"].get<std::string>())
        << golden["text"];
  }
}

TEST(RepairText, LeavesWhatIsNotCertain) {
  for (const char* text :
       {"l\u00e0\u00a0\u00bb fin", "gro\u00df\u201c", "S\u00c3O", "\u00c3 \u00a9", "plain\ttext\n",
        "\u65e5\u672c\u8a9e", "\u0440\u0443\u0441"}) {
    EXPECT_EQ(repair(text), text);
  }
  EXPECT_EQ(repair("a\u0085b\r"), "a\nb\n");
  const std::string whole = "nothing to repair";
  std::string repaired;
  EXPECT_EQ(repair_text(whole, repaired).data(), whole.data());
}

// testdata/personal_data.json: scripts/goldens/clean.py.
TEST(PersonalData, IsFoundAsDatatroveFindsIt) {
  for (const Json& golden : goldens("personal_data.json")) {
    const auto text = golden["text"].get<std::string>();
    EXPECT_EQ(replace(text, {.emails = true, .ips = true}), golden["replaced"].get<std::string>())
        << text;
  }
}

TEST(PersonalData, OfIpv6IsOfGlobalAddresses) {
  const PersonalData ips = {.ips = true};
  EXPECT_EQ(replace("at 2a00:1450:4001:81b::200e, ok", ips), "at 2001:db8::1, ok");
  for (const char* text : {"fe80::1", "::1", "2001:db8::5", "12:30:45", "std::vector", "a::b",
                           "2a00::1x", "x2a00::1"}) {
    EXPECT_EQ(replace(text, ips), text);
  }
}

TEST(PersonalData, OfTelephonesIsNumbersOfKnownForms) {
  const PersonalData phones = {.phones = true};
  EXPECT_EQ(replace("Call +49 (0)89 123456-78 or (212) 555-1234, 212.555.1234.", phones),
            "Call 555-0100 or 555-0100, 555-0100.");
  for (const char* text : {"1234567890", "2024-11-24", "10.1103/123-456-7890", "+1", "+12 34",
                           "978-3-16-148410-0", "x212-555-1234", "212-555-12345", "112-555-1234"}) {
    EXPECT_EQ(replace(text, phones), text);
  }
}

}  // namespace
}  // namespace skein
