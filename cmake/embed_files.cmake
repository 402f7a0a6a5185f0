# Writes OUT, a source with the text of files as constants:
#   cmake -DHEADER=PATH -DFILES=NAME=FILE|NAME=FILE -DOUT=FILE.cc -P cmake/embed_files.cmake
# HEADER, as an #include has it, declares `extern const std::string_view NAME` for each. A literal holds 60,000
# bytes of a file at most; the compiler joins them.
file(WRITE ${OUT}.new "#include \"${HEADER}\"\n\nnamespace skein {\n")
string(REPLACE "|" ";" FILES "${FILES}")
foreach(row ${FILES})
  string(REGEX REPLACE "=.*" "" name "${row}")
  string(REGEX REPLACE "^[^=]*=" "" file "${row}")
  file(READ ${file} text)
  string(LENGTH "${text}" length)
  file(APPEND ${OUT}.new "\nconst std::string_view ${name} =")
  set(begin 0)
  while(begin LESS length)
    string(SUBSTRING "${text}" ${begin} 60000 part)
    file(APPEND ${OUT}.new "\n    R\"embedded(${part})embedded\"")
    math(EXPR begin "${begin} + 60000")
  endwhile()
  file(APPEND ${OUT}.new ";\n")
endforeach()
file(APPEND ${OUT}.new "\n}  // namespace skein\n")
file(RENAME ${OUT}.new ${OUT})
