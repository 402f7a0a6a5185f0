// What is wrong with certificates, for people, where libcurl made no connection: expired, of
// another name, of an authority that is not known, no TLS at all.
#pragma once

#include <string>

#include "skein/store/http_client.h"

namespace skein {

struct TlsFailure {
  int code = 0;       // libcurl's CURLcode
  long verified = 0;  // X509_V_ERR_…; 0: the certificate was not what failed, or its name was
  std::string text;   // libcurl's own words
  std::string url;    // https://host:port/…
};

inline constexpr const char* kNoTls =
    "it does not speak TLS: expected an etcd with --cert-file, or etcd:// in place of etcds:// for "
    "one without";

// "": it is none; waiting may help.
std::string tls_mistake(const TlsFailure& failure, const HttpCertificates& certificates);

}  // namespace skein
