// Where the sources lie and which program tests start. One source knows (tests/test_main.cc), so
// that all others compile to the same objects in every checkout, and ccache finds them.
#pragma once

namespace skein {

extern const char* const kSourceFolder;  // the repository
extern const char* const kProgram;       // build/skein

}  // namespace skein
