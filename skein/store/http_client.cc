#include "skein/store/http_client.h"

#include <curl/curl.h>
#include <fcntl.h>

#include "skein/base/error.h"

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
  Handle() : curl(curl_easy_init()) {
    if (curl == nullptr) fail(ErrorCode::kInternal, "libcurl cannot be initialised");
    headers = curl_slist_append(nullptr, "Content-Type: application/json");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // other threads have their own use for SIGALRM
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");  // the store is in the run's own network
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, close_on_exec);
  }
  ~Handle() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  CURL* curl;
  curl_slist* headers;
};

HttpClient::HttpClient() : handle_(std::make_unique<Handle>()) {}
HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::post(const std::string& url, const std::string& body, double timeout_s,
                            size_t max_bytes) {
  CURL* const curl = handle_->curl;
  Body received{.text = "", .max_bytes = max_bytes};
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(timeout_s * 1e3)));
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
  HttpAnswer answer;
  const CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_WRITE_ERROR) {
    answer.problem = fmt::format("it answers with more than {} bytes", max_bytes);
  } else if (code != CURLE_OK) {
    answer.problem = curl_easy_strerror(code);
  } else {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
    answer.body = std::move(received.text);
  }
  return answer;
}

}  // namespace skein
