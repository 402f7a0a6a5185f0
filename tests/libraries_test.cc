// Which library the program's calls go to, where several have a function of one name.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/testing.h"

namespace skein {
namespace {

// Arrow's libparquet exports a libcrypto of another version.
TEST(Libraries, TlsAndDownloadsUseTheSystemsLibcrypto) {
  const std::string command =
      "LD_BIND_NOW=1 LD_DEBUG=bindings exec " + default_program() + " version";
  const auto outcome = SkeinProcess({"-c", command}, SkeinProcess::kNoFileLimit, "/bin/sh").wait();
  ASSERT_EQ(outcome.exit_code, 0);
  std::istringstream lines(outcome.err);
  int of_libcrypto = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t to = line.find(" to ");
    if (to == line.npos) continue;
    const std::string from = line.substr(0, to), target = line.substr(to);
    const bool is_user = from.find("/libssl.so") != from.npos ||
                         from.find("/libcurl.so") != from.npos ||
                         from.find("/libcrypto.so") != from.npos || from.ends_with("/skein [0]");
    const bool is_crypto = line.find("`CRYPTO_") != line.npos || line.find("`EVP_") != line.npos ||
                           line.find("`OPENSSL_") != line.npos || line.find("`HMAC") != line.npos;
    if (!is_user || !is_crypto) continue;
    EXPECT_EQ(target.find("/libparquet"), target.npos) << line;
    of_libcrypto += target.find("/libcrypto.so") != target.npos ? 1 : 0;
  }
  EXPECT_GT(of_libcrypto, 10);
}

}  // namespace
}  // namespace skein
