#include "skein/config/written_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/files/file.h"
#include "skein/config/fields.h"
#include "tests/error_of.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

std::string refusal(Config config) {
  return error_of([&] { check_utf8(config, "run.toml"); });
}

TEST(ConfigUtf8, EveryTextIsLookedAt) {
  int count = 0;
  for (const ConfigField& field : config_fields()) {
    Config config;
    const ConfigValue value = field.value(config);
    const std::string key = fmt::format("run.toml: {}.{}", field.section, field.key);
    if (const auto* text = std::get_if<std::string*>(&value)) {
      **text = "/data/j\xf6rg";
    } else if (const auto* sources = std::get_if<std::vector<DataSource>*>(&value)) {
      (*sources)->push_back({.path = "/data/j\xf6rg"});
    } else {
      continue;
    }
    ++count;
    EXPECT_THAT(refusal(config), AllOf(HasSubstr(key), HasSubstr("'/data/j\\xf6rg'"),
                                       HasSubstr("which is not UTF-8")));
  }
  EXPECT_GE(count, 15);
}

TEST(ConfigUtf8, SoIsTheFolderThatPathsCountFrom) {
  const test::TempFolder folder;
  const fs::path odd = folder / "j\xf6rg", before = fs::current_path();
  fs::create_directory(odd);
  fs::current_path(odd);
  Config config;
  config.run.dir = "runs/a";
  EXPECT_THAT(refusal(config), AllOf(HasSubstr("run.dir is 'runs/a', counted from the working"),
                                     HasSubstr("/j\\xf6rg, which is not UTF-8")));
  fs::current_path(before);
  config.run.dir = "/runs/jörg";
  config.run.resume = "auto";
  EXPECT_NO_THROW(check_utf8(config, "run.toml"));
}

}  // namespace
}  // namespace skein
