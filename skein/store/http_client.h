// One HTTP request at a time, with a deadline for the whole of it (libcurl).
//
// https  TLS 1.2 or later; the server's certificate must be signed by an authority of `ca_file` and
//        be of the name that was asked for. Nothing turns that off
// Threads  one at a time
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace skein {

struct HttpAnswer {
  long status = 0;  // 0: there was no answer
  std::string body;
  std::string problem;  // why there was none
  // The same where waiting mends nothing: what is wrong with certificates, and what helps.
  std::string mistake;
  bool was_cut = false;  // the connection ended, and no reason came
};

// Files in PEM; empty: the system's authorities, no certificate of one's own.
struct HttpCertificates {
  std::string ca_file, cert_file, key_file;
};

class HttpClient {
 public:
  explicit HttpClient(HttpCertificates certificates = {});
  ~HttpClient();

  // Sends `body` as JSON. An answer of more than `max_bytes` is none. `authorization`: that header;
  // empty: none.
  HttpAnswer post(const std::string& url, const std::string& body, double timeout_s,
                  size_t max_bytes, const std::string& authorization = "");

  // Where one was cut: connects to `url` again and sends nothing, so that a server that refuses a
  // certificate gets to say so, and one that speaks TLS, or does not, shows it. What is wrong, as
  // in HttpAnswer::mistake; "": it may be all right by now.
  std::string why_cut(const std::string& url, double timeout_s) const;

 private:
  std::optional<std::string> ask_why_cut(const std::string& url, double timeout_s) const;

  struct Handle;  // CURL, which keeps its connection from one request to the next
  std::unique_ptr<Handle> handle_;
};

}  // namespace skein
