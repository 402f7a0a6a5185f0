#include "skein/store/etcd_access.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/shell_words.h"

namespace skein {
namespace {

constexpr int64_t kMaxFileBytes = 1 << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A setting, and what it is called where it was found.
struct NamedSetting {
  std::string value, name;
};

NamedSetting either(const std::string& value, const char* key, const char* variable_name) {
  if (!value.empty()) return {value, key};
  return {variable(variable_name), variable_name};
}

FileDescriptor open_named(const NamedSetting& file) {
  try {
    return open_to_read(file.value);
  } catch (const Error& error) {
    fail(ErrorCode::kUsage, "{} is {}, which cannot be read: {}", file.name, file.value,
         error.what());
  }
}

std::string text_of(const NamedSetting& file, bool is_secret) {
  const FileDescriptor open = open_named(file);
  struct stat status {};
  if (::fstat(open.get(), &status) != 0) {
    fail(ErrorCode::kUsage, "{} is {}, which cannot be read: {}", file.name, file.value,
         errno_text(errno));
  }
  if (is_secret && (status.st_mode & 077) != 0) {
    fail(ErrorCode::kUsage,
         "others can read or change the password in {} (mode {:04o}), which {} names: expected "
         "0600, `chmod 600 {}`",
         file.value, status.st_mode & 07777, file.name, file.value);
  }
  return read_file(open, file.value, kMaxFileBytes);
}

void check_pem(const NamedSetting& file, const char* what) {
  if (file.value.empty()) return;
  if (text_of(file, /*is_secret=*/false).find("-----BEGIN ") != std::string::npos) return;
  fail(ErrorCode::kUsage, "{} is {}, which holds no {} in PEM (\"-----BEGIN …\")", file.name,
       file.value, what);
}

void find_certificates(const EtcdSettings& settings, EtcdAccess& access) {
  const NamedSetting ca = either(settings.ca_file, "launch.etcd_ca_file", "ETCDCTL_CACERT");
  const bool is_configured = !settings.cert_file.empty() || !settings.key_file.empty();
  const auto own = [&](const std::string& value, const char* key, const char* name) {
    return is_configured ? NamedSetting{value, key} : NamedSetting{variable(name), name};
  };
  const NamedSetting cert = own(settings.cert_file, "launch.etcd_cert_file", "ETCDCTL_CERT");
  const NamedSetting key = own(settings.key_file, "launch.etcd_key_file", "ETCDCTL_KEY");
  if (cert.value.empty() != key.value.empty()) {
    fail(ErrorCode::kUsage, "{} is set and {} is not: a certificate is of use only with its key",
         cert.value.empty() ? key.name : cert.name, cert.value.empty() ? cert.name : key.name);
  }
  check_pem(ca, "certificate");
  check_pem(cert, "certificate");
  check_pem(key, "key");
  access.ca_file = ca.value;
  access.cert_file = cert.value;
  access.key_file = key.value;
  struct stat status {};
  if (!key.value.empty() && ::stat(key.value.c_str(), &status) == 0 &&
      (status.st_mode & 077) != 0) {
    access.warnings.push_back(fmt::format(
        "others can read or change {} (mode {:04o}), the key of a certificate for etcd, "
        "which {} names: `chmod 600 {}`",
        key.value, status.st_mode & 07777, key.name, shell_word(key.value)));
  }
}

void find_user(const EtcdSettings& settings, bool is_encrypted, EtcdAccess& access) {
  const std::string variable_user = variable("ETCDCTL_USER");
  const std::string given = is_encrypted || !settings.user.empty() ? variable_user : "";
  if (given.empty() && !variable_user.empty()) {
    access.warnings.push_back(
        "ETCDCTL_USER is not used, because etcd:// would send its password unencrypted: write "
        "etcds://, or name the user in launch.etcd_user");
  }
  const size_t colon = given.find(':');
  access.user = settings.user.empty() ? given.substr(0, colon) : settings.user;
  const NamedSetting file = {settings.password_file, "launch.etcd_password_file"};
  if (!file.value.empty()) {
    access.password = text_of(file, /*is_secret=*/true);
    access.password.resize(access.password.find_last_not_of("\r\n") + 1);
  } else if (colon != given.npos && access.user == given.substr(0, colon)) {
    access.password = given.substr(colon + 1);
  } else {
    access.password = variable("ETCDCTL_PASSWORD");
  }
  if (access.user.empty() && !file.value.empty()) {
    fail(ErrorCode::kUsage, "{} is set, but no user: name it in launch.etcd_user", file.name);
  }
  if (!access.user.empty() && !is_encrypted) {
    access.warnings.push_back(
        fmt::format("the password of user {} goes to etcd unencrypted: etcds:// encrypts it, where "
                    "etcd has a certificate (--cert-file)",
                    access.user));
  }
  if (access.user.empty() || !access.password.empty()) return;
  fail(ErrorCode::kUsage,
       "there is no password for user {} of etcd: name a file with it in "
       "launch.etcd_password_file, or set ETCDCTL_PASSWORD",
       access.user);
}

}  // namespace

EtcdAccess find_etcd_access(const EtcdSettings& settings, bool is_encrypted) {
  EtcdAccess access;
  if (is_encrypted) find_certificates(settings, access);
  find_user(settings, is_encrypted, access);
  return access;
}

}  // namespace skein
