// Real etcds with TLS, certificates of clients and users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "skein/base/error.h"
#include "skein/store/key_value_store.h"
#include "tests/error_of.h"
#include "tests/store/etcd_server.h"

namespace skein {
namespace {

using test::certificates;
using test::EtcdServer;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string file(const std::string& name) { return (certificates() / name).string(); }

// What a first call says, which must be a mistake of the user's.
std::string mistake(const std::string& address, const EtcdAccess& access) {
  try {
    store_root(address, access)->check();
    return "it lets us in";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
    return error.what();
  }
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

TEST(EncryptedEtcd, BelievesAndIsBelieved) {
  EtcdServer server({.certificate = "server", .asks_clients = true});
  const auto root = store_root(server.address("demo"), server.access());
  root->check();
  const auto store = root->open("start-0001");
  store->write("one", "1");
  EXPECT_EQ(store->read("one"), "1");
  EXPECT_EQ(root->text(), "etcds://" + server.endpoint() + "/demo");
}

TEST(EncryptedEtcd, WhatIsWrongWithCertificatesIsNamed) {
  EtcdServer server({.certificate = "server", .asks_clients = true});
  const auto with = [&](const std::function<void(EtcdAccess&)>& change) {
    EtcdAccess access = server.access();
    change(access);
    return mistake(server.address("demo"), access);
  };
  EXPECT_THAT(with([](auto& access) { access.ca_file = file("other.pem"); }),
              AllOf(HasSubstr("not signed by an authority of " + file("other.pem")),
                    HasSubstr("launch.etcd_ca_file")));
  EXPECT_THAT(with([](auto& access) { access.ca_file = ""; }),
              HasSubstr("not signed by an authority of this system"));
  EXPECT_THAT(with([](auto& access) { access.cert_file = access.key_file = ""; }),
              AllOf(HasSubstr("asks for a certificate of this machine"),
                    HasSubstr("launch.etcd_cert_file"), HasSubstr("ETCDCTL_CERT")));
  EXPECT_THAT(with([](auto& access) {
                access.cert_file = file("lapsed.pem");
                access.key_file = file("lapsed.key");
              }),
              AllOf(HasSubstr(file("lapsed.pem") + ", has expired"), HasSubstr("openssl x509")));
  EXPECT_THAT(with([](auto& access) {
                access.cert_file = file("other.pem");
                access.key_file = file("other.key");
              }),
              HasSubstr("it refuses the certificate of this machine, " + file("other.pem")));
  for (const char* key : {"server.key", "locked.key", "token.pub"}) {
    EXPECT_THAT(with([&](auto& access) { access.key_file = file(key); }),
                AllOf(HasSubstr(file(key) + " cannot be used"), HasSubstr("passphrase")));
  }
}

TEST(EncryptedEtcd, ACertificateOfAnotherNameOrFromLongAgoIsNamed) {
  EtcdServer elsewhere({.certificate = "elsewhere"});
  EXPECT_THAT(mistake(elsewhere.address("demo"), elsewhere.access()),
              AllOf(HasSubstr("of another name"), HasSubstr("127.0.0.1"), HasSubstr("openssl")));
  EtcdServer expired({.certificate = "expired"});
  EXPECT_THAT(mistake(expired.address("demo"), expired.access()),
              AllOf(HasSubstr("its certificate has expired"), HasSubstr("openssl s_client")));
}

TEST(EncryptedEtcd, WhoSpeaksInTheClearWhereTheOtherDoesNotIsTold) {
  EtcdServer plain, encrypted({.certificate = "server"});
  EXPECT_THAT(mistake("etcds://" + plain.endpoint() + "/demo", encrypted.access()),
              AllOf(HasSubstr("does not speak TLS"), HasSubstr("etcd://")));
  EXPECT_THAT(
      test::error_of([&] { store_root("etcd://" + encrypted.endpoint() + "/demo")->check(); }),
      HasSubstr("etcds://"));
}

EtcdAccess as(const std::string& user, const std::string& password, EtcdAccess access = {}) {
  access.user = user;
  access.password = password;
  return access;
}

TEST(EtcdUsers, OnlyWhoMayIsLetIn) {
  EtcdServer server;
  server.add_users("skein", "demo");
  const std::string address = server.address("demo");
  const auto root = store_root(address, as("skein", "user's"));
  root->check();
  const auto store = root->open("start-0001");
  store->write("one", "1");
  EXPECT_EQ(store->read("one"), "1");
  store->remove_all();
  EXPECT_THAT(mistake(address, as("skein", "wrong")),
              AllOf(HasSubstr("no user \"skein\" with this password"), Not(HasSubstr("wrong")),
                    HasSubstr("launch.etcd_password_file")));
  EXPECT_THAT(mistake(address, as("nobody", "user's")), HasSubstr("no user \"nobody\""));
  EXPECT_THAT(mistake(address, {}),
              AllOf(HasSubstr("lets in only users"), HasSubstr("launch.etcd_user")));
  EXPECT_THAT(mistake(server.address("other"), as("skein", "user's")),
              AllOf(HasSubstr("\"skein\" may not read and write"), HasSubstr("other/"),
                    HasSubstr("etcdctl role grant-permission ROLE readwrite other/")));
}

TEST(EtcdUsers, AUserOfAnEtcdWithoutUsersIsNoMistake) {
  EtcdServer server;
  const auto store = store_root(server.address("demo"), as("skein", "user's"))->open("start-0001");
  store->write("one", "1");
  EXPECT_EQ(store->read("one"), "1");
}

// Signed ones have a last second; the others are known to an etcd until it is started again.
TEST(EtcdUsers, TokensThatAreOverAreReplaced) {
  EtcdServer with_signed({.certificate = "server",
                          .asks_clients = true,
                          .options = {"--auth-token", "jwt,pub-key=" + file("token.pub") +
                                                          ",priv-key=" + file("token.key") +
                                                          ",sign-method=RS256,ttl=1s"}});
  with_signed.add_users("skein", "demo");
  EtcdServer simple({.certificate = "server"});
  simple.add_users("skein", "demo");
  EtcdAccess named = as("skein", "user's", with_signed.access());
  named.cert_file = file("server.pem");
  named.key_file = file("server.key");
  EXPECT_THAT(mistake(with_signed.address("demo"), named),
              AllOf(HasSubstr("no certificate with a common name"), HasSubstr("/O=skein")));
  const auto store = [](const EtcdServer& server) {
    const auto access = as("skein", "user's", server.access());
    return store_root(server.address("demo"), access)->open("start-0001");
  };
  const auto one = store(with_signed), two = store(simple);
  for (int i = 0; i < 3; ++i) {
    for (const auto* each : {&one, &two}) {
      (*each)->write("one", std::to_string(i));
      EXPECT_EQ((*each)->read("one"), std::to_string(i));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    simple.stop();
    simple.start();
  }
  EXPECT_THAT(one->names(""), testing::ElementsAre("one"));
}

// A token belongs to one member: the next endpoint has its own.
TEST(EtcdUsers, EachEndpointHasATokenOfItsOwn) {
  EtcdServer first, second;  // two clusters, so that no token of one is of use at the other
  first.add_users("skein", "demo");
  second.add_users("skein", "demo");
  const auto root = store_root("etcd://" + first.endpoint() + "," + second.endpoint() + "/demo",
                               as("skein", "user's"));
  root->open("start-0001");
  first.stop();
  root->open("start-0001")->write("one", "1");
  const auto store = root->open("start-0001");
  first.start();
  second.stop();
  EXPECT_EQ(store->read("one"), std::nullopt);
}

// Training that is under way waits until somebody has mended it.
TEST(EtcdUsers, AMistakeOnceARunIsUnderWayIsWaitedFor) {
  EtcdServer server({.certificate = "server"});
  server.add_users("skein", "demo");
  const auto access = as("skein", "user's", server.access());
  const auto store = store_root(server.address("demo"), access)->open("start-0001");
  store->write("one", "1");
  const Json root = {{"name", "root"}, {"password", "root's"}};
  const auto token = server.administer("/v3/auth/authenticate", root).at("token");
  const auto set = [&](const char* password) {
    const Json body = {{"name", "skein"}, {"password", password}};
    server.administer("/v3/auth/user/changepw", body, token);
  };
  set("another");
  EXPECT_EQ(code_of([&] { store->write("one", "2"); }), ErrorCode::kIo);
  set("user's");
  store->write("one", "3");
  EXPECT_EQ(store->read("one"), "3");
  EtcdAccess worker = as("skein", "user's", server.access());
  worker.ca_file = file("other.pem");
  worker.is_under_way = true;
  EXPECT_EQ(code_of([&] { store_root(server.address("demo"), worker)->open("start-0001"); }),
            ErrorCode::kIo);
}

class EtcdAccesses : public testing::Test {
 protected:
  ~EtcdAccesses() override {
    for (const char* name :
         {"ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY", "ETCDCTL_USER", "ETCDCTL_PASSWORD"}) {
      ::unsetenv(name);
    }
  }
  std::string password_file(mode_t mode) const {
    const fs::path path = folder_ / "password";
    std::ofstream(path) << "of the file: \n";
    ::chmod(path.c_str(), mode);
    return path.string();
  }
  const test::TempFolder folder_;
};

TEST_F(EtcdAccesses, AKeyGoesBeforeItsVariable) {
  ::setenv("ETCDCTL_CACERT", file("other.pem").c_str(), 1);
  ::setenv("ETCDCTL_CERT", file("server.pem").c_str(), 1);
  ::setenv("ETCDCTL_KEY", file("server.key").c_str(), 1);
  ::setenv("ETCDCTL_USER", "variable:a:b", 1);
  const EtcdAccess from_variables = find_etcd_access({}, true);
  EXPECT_EQ(from_variables.ca_file, file("other.pem"));
  EXPECT_EQ(from_variables.key_file, file("server.key"));
  EXPECT_EQ(from_variables.user, "variable");
  EXPECT_EQ(from_variables.password, "a:b");
  const EtcdAccess from_keys = find_etcd_access({.ca_file = file("ca.pem"),
                                                 .cert_file = file("client.pem"),
                                                 .key_file = file("client.key"),
                                                 .user = "key",
                                                 .password_file = password_file(0600)},
                                                true);
  EXPECT_EQ(from_keys.ca_file, file("ca.pem"));
  EXPECT_EQ(from_keys.cert_file, file("client.pem"));
  EXPECT_EQ(from_keys.user, "key");
  EXPECT_EQ(from_keys.password, "of the file: ");
  EXPECT_EQ(find_etcd_access({}, false).ca_file, "");  // etcd:// has no certificates
  ::setenv("ETCDCTL_PASSWORD", "its own", 1);
  EXPECT_EQ(find_etcd_access({.user = "key"}, false).password, "its own");
}

TEST_F(EtcdAccesses, WhatCannotBeUsedIsNamed) {
  const auto refusal = [](const EtcdSettings& settings) {
    return test::error_of([&] { find_etcd_access(settings, true); });
  };
  EXPECT_THAT(
      refusal({.ca_file = "/nowhere/ca.pem"}),
      AllOf(HasSubstr("launch.etcd_ca_file is /nowhere/ca.pem"), HasSubstr("No such file")));
  EXPECT_THAT(refusal({.ca_file = folder_.path().string()}), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal({.ca_file = password_file(0600)}), HasSubstr("no certificate in PEM"));
  EXPECT_THAT(refusal({.cert_file = file("client.pem")}),
              HasSubstr("launch.etcd_cert_file is set and launch.etcd_key_file is not"));
  EXPECT_THAT(refusal({.user = "skein"}),
              AllOf(HasSubstr("no password for user skein"), HasSubstr("ETCDCTL_PASSWORD")));
  EXPECT_THAT(refusal({.password_file = password_file(0600)}), HasSubstr("no user"));
  EXPECT_THAT(refusal({.user = "skein", .password_file = password_file(0640)}),
              AllOf(HasSubstr("mode 0640"), HasSubstr("chmod 600")));
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal({.user = "skein", .password_file = pipe}), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace skein
