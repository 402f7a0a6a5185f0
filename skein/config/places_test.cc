// Every key that names a file or a folder is a Place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "skein/base/error.h"
#include "skein/config/fields.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// An override for each path of a configuration, with %s for the path.
std::vector<std::pair<std::string, std::string>> path_keys() {
  std::vector<std::pair<std::string, std::string>> keys;
  for (const ConfigField& field : config_fields()) {
    Config config;
    const std::string key = fmt::format("{}.{}", field.section, field.key);
    const bool is_list = std::holds_alternative<std::vector<DataSource>*>(field.value(config));
    if (field.limits.is_path) keys.emplace_back(key, key + "=\"%s\"");
    if (is_list) keys.emplace_back(key, key + "=[{path = \"%s\", name = \"a\"}]");
  }
  return keys;
}

std::string with(std::string text, const std::string& path) {
  return text.replace(text.find("%s"), 2, path);
}

TEST(ConfigPlaces, EveryPathIsParsed) {
  setenv("SKEIN_TEST_DATA", "/data/me", 1);
  unsetenv("SKEIN_TEST_NONE");
  const auto keys = path_keys();
  EXPECT_GE(keys.size(), 12u);
  for (const auto& [name, text] : keys) {
    SCOPED_TRACE(name);
    const std::string key = name.substr(name.find('.') + 1);
    for (const auto& [path, words] : {std::pair("gs://b/x", "gs:// is not known here"),
                                      {"hf://a/b", "hf download"},
                                      {"file:///x", "write the path alone"},
                                      {"${SKEIN_TEST_NONE}/x", "SKEIN_TEST_NONE is not set"},
                                      {"$HOME/x", "${HOME}"},
                                      {"~you/x", "your own home folder"}}) {
      const std::string override = with(text, path);
      EXPECT_THAT(error_of([&] { parse_config("", "run.toml", std::span(&override, 1)); }),
                  AllOf(HasSubstr("--set " + name), HasSubstr(key + " in ["), HasSubstr(path),
                        HasSubstr(words)));
    }
    const std::string override = with(text, "${SKEIN_TEST_DATA}/x");
    Config config = parse_config("", "run.toml", std::span(&override, 1));
    EXPECT_THAT(config_text(config), AllOf(HasSubstr("\"/data/me/x\""), Not(HasSubstr("${"))));
    EXPECT_THAT(config_text_as_written(config), HasSubstr("\"${SKEIN_TEST_DATA}/x\""));
    EXPECT_EQ(parse_config(config_text(config), "again.toml"), config);
    EXPECT_EQ(parse_config(config_text_as_written(config), "again.toml"), config);
  }
}

TEST(ConfigPlaces, OnlyWhatCanLieInAStoreMay) {
  for (const char* key :
       {"run.dir", "model.hf_config", "launch.secret_file", "launch.rendezvous"}) {
    const std::string override = std::string(key) + "=s3://b/x";
    EXPECT_THAT(error_of([&] { parse_config("", "run.toml", std::span(&override, 1)); }),
                HasSubstr("an object of a store, which this cannot be"))
        << key;
  }
  for (const char* text : {"checkpoint.dir=s3://b/x", "data.train=s3://b/x", "run.resume=s3://b/x",
                           "launch.rendezvous=etcd://node:2379/x",
                           "launch.rendezvous=etcds://node:2379/x", "run.resume=never"}) {
    const std::string override = text;
    EXPECT_NO_THROW(parse_config("", "run.toml", std::span(&override, 1))) << text;
  }
}

// A path that has become another is written as what it means, and a dollar as two.
TEST(ConfigPlaces, WhatIsWrittenIsReadBack) {
  setenv("SKEIN_TEST_DATA", "/data/me", 1);
  const std::string override = "data.train=${SKEIN_TEST_DATA}/x";
  Config config = parse_config("", "run.toml", std::span(&override, 1));
  config.data.train = "/data/$week/x";
  for (const std::string& text : {config_text(config), config_text_as_written(config)}) {
    EXPECT_THAT(text, HasSubstr("train = \"/data/$$week/x\""));
    EXPECT_EQ(parse_config(text, "again.toml").data.train, "/data/$week/x");
  }
  // One that counts from the working folder would mean another file elsewhere.
  setenv("SKEIN_TEST_DATA", "data", 1);
  config = parse_config("", "run.toml", std::span(&override, 1));
  EXPECT_THAT(config_text_as_written(config), HasSubstr("train = \"data/x\""));
}

}  // namespace
}  // namespace skein
