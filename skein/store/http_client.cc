#include "skein/store/http_client.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "skein/base/error.h"
#include "skein/store/tls_mistake.h"

namespace skein {
namespace {

struct Body {
  std::string text;
  size_t max_bytes;
};

size_t take_bytes(char* bytes, size_t size, size_t count, void* into) {
  Body& body = *static_cast<Body*>(into);
  if (size * count > body.max_bytes - body.text.size()) return 0;  // which ends the request
  body.text.append(bytes, size * count);
  return size * count;
}

// Workers that are started meanwhile do not inherit the connection.
int close_on_exec(void*, curl_socket_t socket, curlsocktype) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  return CURL_SOCKOPT_OK;
}

}  // namespace

struct HttpClient::Handle {
  explicit Handle(HttpCertificates given) : certificates(std::move(given)), curl(curl_easy_init()) {
    if (curl == nullptr) fail(ErrorCode::kInternal, "libcurl cannot be initialised");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // other threads have their own use for SIGALRM
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");  // the store is in the run's own network
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, close_on_exec);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words.data());
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    if (!certificates.ca_file.empty()) {
      curl_easy_setopt(curl, CURLOPT_CAINFO, certificates.ca_file.c_str());
      curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);  // these authorities and no others
#if LIBCURL_VERSION_NUM >= 0x075700
      curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT,
                       0L);  // a file that is renewed counts at once
#endif
    }
    if (certificates.cert_file.empty()) return;
    curl_easy_setopt(curl, CURLOPT_SSLCERT, certificates.cert_file.c_str());
    curl_easy_setopt(curl, CURLOPT_SSLKEY, certificates.key_file.c_str());
    curl_easy_setopt(curl, CURLOPT_KEYPASSWD, "");  // else OpenSSL asks for one on the terminal
  }
  ~Handle() { curl_easy_cleanup(curl); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  CURLcode connect(const std::string& url, double timeout_s) {
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(timeout_s * 1e3)));
    return curl_easy_perform(curl);
  }
  // The server's first words on a connection on which it was told nothing.
  CURLcode hear(double timeout_s) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &socket);
    pollfd one{socket, POLLIN, 0};
    ::poll(&one, 1, static_cast<int>(timeout_s * 1e3));
    char byte = 0;
    size_t got = 0;
    return curl_easy_recv(curl, &byte, 1, &got);
  }
  std::string mistake(CURLcode code, const std::string& url) const {
    const bool has_words = words.front() != '\0';
    TlsFailure failure{.code = code,
                       .verified = 0,
                       .text = has_words ? words.data() : curl_easy_strerror(code),
                       .url = url};
    curl_easy_getinfo(curl, CURLINFO_SSL_VERIFYRESULT, &failure.verified);
    return tls_mistake(failure, certificates);
  }

  const HttpCertificates certificates;
  CURL* curl;
  std::array<char, CURL_ERROR_SIZE> words = {};
};

HttpClient::HttpClient(HttpCertificates certificates)
    : handle_(std::make_unique<Handle>(std::move(certificates))) {}
HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::post(const std::string& url, const std::string& body, double timeout_s,
                            size_t max_bytes, const std::string& authorization) {
  CURL* const curl = handle_->curl;
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(
      curl_slist_append(nullptr, "Content-Type: application/json"), curl_slist_free_all);
  if (!authorization.empty()) {
    curl_slist_append(headers.get(), ("Authorization: " + authorization).c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  Body received{.text = "", .max_bytes = max_bytes};
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(timeout_s * 1e3)));
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
  HttpAnswer answer;
  handle_->words.front() = '\0';
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, nullptr);
  if (code == CURLE_WRITE_ERROR) {
    answer.problem = fmt::format("it answers with more than {} bytes", max_bytes);
  } else if (code != CURLE_OK) {
    answer.problem = curl_easy_strerror(code);
    if (url.starts_with("https:")) {
      if (handle_->words.front() != '\0') answer.problem = handle_->words.data();
      answer.mistake = handle_->mistake(code, url);
    }
    answer.was_cut =
        answer.mistake.empty() && (code == CURLE_SSL_CONNECT_ERROR || code == CURLE_GOT_NOTHING ||
                                   code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR);
  } else {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
    answer.body = std::move(received.text);
  }
  return answer;
}

std::string HttpClient::why_cut(const std::string& url, double timeout_s) const {
  constexpr int kTries = 3;  // a server that refuses may close before either end has said anything
  for (int tries = 1;; ++tries) {
    const auto why = ask_why_cut(url, timeout_s / kTries);
    if (why || tries == kTries) return why.value_or("");
  }
}

// Nothing: it was cut again in the same way.
std::optional<std::string> HttpClient::ask_why_cut(const std::string& url, double timeout_s) const {
  const std::string rest = url.substr(url.find("://"));
  const std::string encrypted = "https" + rest;
  Handle again(handle_->certificates);
  const CURLcode code = again.connect(encrypted, timeout_s / 3);
  if (!url.starts_with("https:")) {
    const bool speaks_tls = code == CURLE_OK || code == CURLE_PEER_FAILED_VERIFICATION;
    return speaks_tls ? "it wants TLS: write etcds:// in place of etcd://" : "";
  }
  const CURLcode heard = code == CURLE_OK ? again.hear(timeout_s / 3) : code;
  if (heard == CURLE_OK || heard == CURLE_AGAIN) return "";
  if (std::string mistake = again.mistake(heard, url); !mistake.empty()) return mistake;
  if (code != CURLE_SSL_CONNECT_ERROR) return std::nullopt;
  HttpClient plain;
  const HttpAnswer answer = plain.post("http" + rest + "/version", "", timeout_s / 3, 1 << 20);
  if (answer.status != 0) return kNoTls;
  return std::nullopt;
}

}  // namespace skein
