// One HTTP request at a time, with a deadline for the whole of it (libcurl).
// Threads  one at a time
#pragma once

#include <memory>
#include <string>

namespace skein {

struct HttpAnswer {
  long status = 0;  // 0: there was no answer
  std::string body;
  std::string problem;  // why there was none
};

class HttpClient {
 public:
  HttpClient();
  ~HttpClient();

  // Sends `body` as JSON. An answer of more than `max_bytes` is none.
  HttpAnswer post(const std::string& url, const std::string& body, double timeout_s,
                  size_t max_bytes);

 private:
  struct Handle;  // CURL, which keeps its connection from one request to the next
  std::unique_ptr<Handle> handle_;
};

}  // namespace skein
