#pragma once
// A set of enumerators as one word of bits; used for features and capabilities.
#include <cstdint>
#include <initializer_list>
#include <string>

namespace octet {

// A set of enumerators of E, one bit each. E needs fewer than 64 enumerators and a `name(E)`.
template <class E>
class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> members) {
    for (E e : members) bits_ |= bit(e);
  }

  constexpr bool has(E e) const { return (bits_ & bit(e)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr void insert(E e) { bits_ |= bit(e); }
  constexpr void erase(E e) { bits_ &= ~bit(e); }

  // The members of this set that `other` lacks.
  constexpr EnumSet minus(EnumSet other) const {
    EnumSet result;
    result.bits_ = bits_ & ~other.bits_;
    return result;
  }

  // Calls f(e) for each member, in the order of the enumeration.
  template <class F>
  constexpr void each(F f) const {
    for (int i = 0; i < 64; ++i) {
      if ((bits_ >> i & 1) != 0) f(static_cast<E>(i));
    }
  }

  constexpr bool operator==(const EnumSet&) const = default;

 private:
  static constexpr uint64_t bit(E e) { return uint64_t{1} << static_cast<int>(e); }
  uint64_t bits_ = 0;
};

// "a, b, c", or "none" for an empty set.
template <class E>
std::string to_string(EnumSet<E> set) {
  std::string result;
  set.each([&](E e) {
    if (!result.empty()) result += ", ";
    result += name(e);
  });
  return result.empty() ? "none" : result;
}

}  // namespace octet
