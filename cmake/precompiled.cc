// Nothing: CMake compiles the headers for a target, and a target needs a source.
