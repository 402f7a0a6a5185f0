// Keys that are for etcd alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "skein/config/config.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// What the check says with that rendezvous and that line of [launch]; "": it is content.
std::string problem(const std::string& rendezvous, const std::string& setting) {
  const std::string text = "[launch]\nrendezvous = \"" + rendezvous + "\"\n" + setting;
  const Config config = parse_config(text, "run.toml");
  const auto checked =
      try_run([&] { return check_config(config, "run.toml", ConfigUse::kPlan), 0; });
  return checked.ok() ? "" : checked.error().what();
}

TEST(ConfigEtcd, WhatWouldBeOfNoUseIsNotIgnored) {
  for (const char* key : {"etcd_ca_file", "etcd_cert_file", "etcd_key_file"}) {
    const std::string setting = std::string(key) + " = \"a\"";
    for (const char* place : {"", "folder", "etcd://h:1/a"}) {
      EXPECT_THAT(problem(place, setting),
                  AllOf(HasSubstr(std::string(key) + " is set"), HasSubstr("expected etcds://")));
    }
    EXPECT_EQ(problem("etcds://h:1/a", setting), "");
  }
  for (const char* key : {"etcd_user", "etcd_password_file"}) {
    const std::string setting = std::string(key) + " = \"a\"";
    EXPECT_THAT(problem("", setting), HasSubstr(std::string(key) + " is set"));
    EXPECT_EQ(problem("etcd://h:1/a", setting), "");
    EXPECT_EQ(problem("etcds://h:1/a", setting), "");
  }
}

// A configuration is written into the run folder.
TEST(ConfigEtcd, APasswordIsNotTakenAndNotRepeated) {
  EXPECT_THAT(problem("etcds://h:1/a", "etcd_user = \"a:hidden\""),
              AllOf(HasSubstr("etcd_password_file"), Not(HasSubstr("hidden"))));
  EXPECT_THAT(problem("etcd://skein:hidden@h:1/a", ""),
              AllOf(HasSubstr("etcd_password_file"), Not(HasSubstr("hidden"))));
  EXPECT_EQ(problem("folder@home", ""), "");
}

}  // namespace
}  // namespace skein
