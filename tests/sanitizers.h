// Whether the sanitizers are in this build. They open files of their own, so a test that leaves a
// process no file descriptor skips with them.
#pragma once

namespace skein {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace skein
