// Whom a run believes to be its etcd, and as whom it speaks to it: launch.etcd_…, and where these
// are empty, the variables of etcdctl.
//
//   etcd_ca_file         ETCDCTL_CACERT     signs the servers' certificates; none: the system's
//   etcd_cert_file       ETCDCTL_CERT       this machine's certificate, with etcd_key_file
//   etcd_key_file        ETCDCTL_KEY
//   etcd_user            ETCDCTL_USER       NAME, the variable also NAME:PASSWORD
//   etcd_password_file   ETCDCTL_PASSWORD   the password itself in the variable
// Over etcd://, which everybody on the way can read, ETCDCTL_USER is not used: it may be meant for
// another etcd. Files are in PEM. The password is never in a configuration, which is written into
// the run folder.
//
// Errors  Error{kUsage}: a file that is not there, or not one; a password that others can read; one
//         of a pair without the other
#pragma once

#include <string>
#include <vector>

namespace skein {

struct EtcdSettings {  // of the configuration
  std::string ca_file, cert_file, key_file, user, password_file;
};

struct EtcdAccess {
  std::string ca_file, cert_file, key_file;
  std::string user, password;  // "": none

  std::vector<std::string> warnings;  // for people, at a start

  // What a user must mend is an error of the user's at a start. Later, and in workers, it is waited
  // for as a store is that does not answer.
  bool is_under_way = false;
};

// `is_encrypted`: etcds://, which alone has certificates.
EtcdAccess find_etcd_access(const EtcdSettings& settings, bool is_encrypted);

}  // namespace skein
