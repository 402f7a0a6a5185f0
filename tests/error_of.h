// What a call says that must fail.
#pragma once

#include <string>

#include "skein/base/error.h"

namespace skein::test {

// The message of the Error that `body` throws; "" if it throws none.
template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace skein::test
