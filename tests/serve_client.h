// What tests of `skein serve` share: the program as a server, asked by libcurl.
#pragma once

#include <curl/curl.h>

#include <optional>
#include <sstream>

#include "tests/testing.h"

namespace skein {

struct ServeAnswer {
  long status = 0;
  std::string body;
  Json json() const { return Json::parse(body); }
  std::string error() const { return json().at("error").at("message"); }
};

class ServeProcess {
 public:
  explicit ServeProcess(const fs::path& served, Arguments options = {}) {
    Arguments arguments = {"serve", served.string(), "--listen", "127.0.0.1:0", "--threads", "1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    process_.emplace(arguments);
    constexpr std::string_view kBegin = "serving on ";
    std::string err;
    const bool serves = wait_until([&] {
      err = process_->error_so_far();
      return err.find("/v1\n") != std::string::npos;
    });
    EXPECT_TRUE(serves) << err;
    const size_t begin = err.find(kBegin) + kBegin.size();
    url_ = err.substr(begin, err.find("/v1\n", begin) - begin);
  }

  ServeAnswer ask(const std::string& path, const std::string& body = "",
                  const std::string& header = "") const {
    ServeAnswer answer;
    CURL* curl = curl_easy_init();
    const std::string url = url_ + path;
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    if (!body.empty()) curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
    curl_slist* headers = nullptr;
    if (!header.empty()) headers = curl_slist_append(headers, header.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.body);
    curl_easy_setopt(
        curl, CURLOPT_WRITEFUNCTION, +[](char* data, size_t size, size_t count, void* out) {
          static_cast<std::string*>(out)->append(data, size * count);
          return size * count;
        });
    EXPECT_EQ(curl_easy_perform(curl), CURLE_OK) << url;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return answer;
  }
  Json completion(const std::string& body) const {
    const ServeAnswer answer = ask("/v1/completions", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
  Outcome stop() {
    process_->send(SIGTERM);
    return process_->wait();
  }

 private:
  std::optional<SkeinProcess> process_;
  std::string url_;
};

// The events of a stream, without the last, "[DONE]".
inline std::vector<Json> events(const std::string& body) {
  std::vector<Json> found;
  std::istringstream lines(body);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("data: ")) continue;
    last = line.substr(6);
    if (last != "[DONE]") found.push_back(Json::parse(last));
  }
  EXPECT_EQ(last, "[DONE]");
  return found;
}

}  // namespace skein
