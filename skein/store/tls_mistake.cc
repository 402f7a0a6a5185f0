#include "skein/store/tls_mistake.h"

#include <curl/curl.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"

namespace skein {
namespace {

// "host:port" of "https://host:port/path".
std::string place_of(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

template <size_t N>
bool has_any(const std::string& text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != text.npos; });
}

// Whether the certificate in `file` is past its last day.
bool has_expired(const std::string& file) {
  const std::optional<std::string> text = read_file_if_there(file);
  if (!text) return false;
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(
      BIO_new_mem_buf(text->data(), static_cast<int>(text->size())), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> found(
      PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr), X509_free);
  return found != nullptr && X509_cmp_current_time(X509_get0_notAfter(found.get())) < 0;
}

std::string of_server(const TlsFailure& failure, const HttpCertificates& certificates) {
  const std::string show = fmt::format(
      "`openssl s_client -connect {} </dev/null | openssl x509 "
      "-noout -dates -ext subjectAltName` shows it",
      place_of(failure.url));
  if (failure.text.find("subject name") != std::string::npos) {
    return fmt::format(
        "its certificate is of another name ({}): write a name that is in it into "
        "launch.rendezvous, or have one made that holds this name; {}",
        failure.text, show);
  }
  switch (failure.verified) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("its certificate has expired, and must be renewed there; {}", show);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("its certificate is not valid yet: is the clock of this machine right? {}",
                         show);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format(
          "its certificate is not signed by an authority of {}: name the file of the signing "
          "authority in launch.etcd_ca_file or ETCDCTL_CACERT",
          certificates.ca_file.empty() ? "this system" : certificates.ca_file);
    default:
      return fmt::format("its certificate is not good ({}); {}", failure.text, show);
  }
}

std::string of_this_machine(const TlsFailure& failure, const HttpCertificates& certificates) {
  const std::string& file = certificates.cert_file;
  if (file.empty()) {
    return fmt::format(
        "it asks for a certificate of this machine ({}): name it and its key in "
        "launch.etcd_cert_file and launch.etcd_key_file, or ETCDCTL_CERT and "
        "ETCDCTL_KEY",
        failure.text);
  }
  if (has_expired(file)) {
    return fmt::format(
        "the certificate of this machine, {}, has expired: `openssl x509 -noout "
        "-dates -in {}` shows it",
        file, file);
  }
  return fmt::format(
      "it refuses the certificate of this machine, {} ({}): expected a certificate for clients, "
      "signed by an authority that etcd knows (--trusted-ca-file)",
      file, failure.text);
}

}  // namespace

std::string tls_mistake(const TlsFailure& failure, const HttpCertificates& certificates) {
  // What Go's TLS, which etcd has, and OpenSSL say of a client's certificate.
  constexpr std::array<std::string_view, 6> kRefused = {
      "alert bad certificate",     "alert certificate required", "alert unknown ca",
      "alert certificate unknown", "alert certificate expired",  "alert handshake failure"};
  constexpr std::array<std::string_view, 3> kOtherWords = {"wrong version number", "http request",
                                                           "packet length too long"};
  switch (failure.code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      return of_server(failure, certificates);
    case CURLE_SSL_CACERT_BADFILE:
      return fmt::format(
          "{} holds no certificate that can be read ({})",
          certificates.ca_file.empty() ? "the system's list of authorities" : certificates.ca_file,
          failure.text);
    case CURLE_SSL_CERTPROBLEM:
      return fmt::format(
          "the certificate {} and the key {} cannot be used ({}): expected PEM, the "
          "key without a passphrase and of this certificate",
          certificates.cert_file, certificates.key_file, failure.text);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_RECV_ERROR:  // the last word of TLS 1.3 comes after the connection
    case CURLE_SEND_ERROR:
      if (has_any(failure.text, kRefused)) return of_this_machine(failure, certificates);
      return has_any(failure.text, kOtherWords) ? kNoTls : "";
    default:
      return "";
  }
}

}  // namespace skein
