// Whether AddressSanitizer is in this build, with which UndefinedBehaviorSanitizer comes. They open
// files of their own, so a test that leaves a process no file descriptor skips with them.
#pragma once

namespace skein {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kHasAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kHasAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif

}  // namespace skein
