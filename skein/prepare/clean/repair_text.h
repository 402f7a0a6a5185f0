// Repairs text that earlier programs damaged, and brings it into one form.
//
// Formula  in this order:
//            UTF-8 that was read as Windows-1252 is decoded again, where that is certain:
//              U+0080 to U+00FF (two characters that begin with Â or Ã), general punctuation and
//              signs U+2000 to U+2BFF (three, with â), emoji (four, with ðŸ), the mark U+FEFF (ï»¿)
//            line ends become newlines: CR LF, CR, NEL, U+2028, U+2029
//            characters that nothing shows are removed: controls but tab, newline and form feed;
//              U+FEFF, U+206A to U+206F, U+FFF9 to U+FFFC
//            normalization form C
// Cost     text of printable ASCII is only looked through
// Source   what ftfy, which datatrove calls for this, does to the same characters
//          (https://ftfy.readthedocs.io); it decodes more kinds of damage, by weighing them
#pragma once

#include <string>
#include <string_view>

namespace skein {

// `text`, which is UTF-8: itself, or what `repaired` then holds.
std::string_view repair_text(std::string_view text, std::string& repaired);

}  // namespace skein
