// Replaces e-mail addresses, public IP addresses and telephone numbers.
//
// Formula  e-mail   dot-atom@domain, as RFC 5322 has it without comments and quotes, with a domain
//                   of at least two labels: email@example.com in its place
//          ip       IPv4 addresses that are not of private or reserved networks: 192.0.2.1; IPv6
//                   addresses of 2000::/3: 2001:db8::1
//          phone    + and 8 to 15 digits in groups; (ddd) ddd-dddd and ddd-ddd-dddd, also with dots
//                   or blanks: 555-0100
// Cost     one search for @, digits and colons each
// Source   e-mail and IPv4 as datatrove's PIIFormatter, which FineWeb used, finds them; what is put
//          in their place is of RFC 2606, 5737 and 3849. Telephone numbers are ours
#pragma once

#include <string>
#include <string_view>

namespace skein {

struct PersonalData {
  bool emails = false, ips = false, phones = false;

  bool any() const { return emails || ips || phones; }
};

struct PersonalDataCounts {
  int64_t num_emails = 0, num_ips = 0, num_phones = 0;
};

// `text`, which is UTF-8: itself, or what `changed` then holds.
std::string_view replace_personal_data(std::string_view text, const PersonalData& what,
                                       PersonalDataCounts& counts, std::string& changed);

}  // namespace skein
