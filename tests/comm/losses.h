// What a call that loses a peer says.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "skein/base/error.h"

namespace skein::comm_test {

// The message with which `action` fails for a lost peer; it must fail.
template <typename Action>
std::string loss_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was lost";
  return "";
}

inline void expect_says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
  }
}

}  // namespace skein::comm_test
