#pragma once
// Errors of Octet: bad input or a bad environment, thrown once and caught at an edge (main, the
// engine loop, tests). A broken promise of our own code is a bug: OCTET_CHECK throws Code::Bug with
// the values that broke it.
#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace octet {

// Why a command ends; each code is one exit status of the process (exit_status below).
enum class Code {
  CheckFailed,  // 1: a check found something (verify, inspect)
  BadInput,     // 2: bad arguments, checkpoint, request, template
  CannotRun,    // 3: nothing can run it, or it does not fit
  Environment,  // 4: disk full, permission, lost device, numbers that are not finite
  Bug,          // 70: a broken promise of ours
  Interrupted,  // 130: stopped by the user
};

// The exit status of a process that ends with `code`.
constexpr int exit_status(Code code) {
  switch (code) {
    case Code::CheckFailed:
      return 1;
    case Code::BadInput:
      return 2;
    case Code::CannotRun:
      return 3;
    case Code::Environment:
      return 4;
    case Code::Bug:
      return 70;
    case Code::Interrupted:
      return 130;
  }
  return 70;
}

// One message for a person: subject, expected, got, where; `hint` says the next step and may be
// empty.
class Error : public std::exception {
 public:
  Error(Code code, std::string message, std::string hint = {})
      : code_(code), message_(std::move(message)), hint_(std::move(hint)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  const char* what() const noexcept override { return message_.c_str(); }

  // The same error with "context: " before its message; used while it travels up.
  Error with(std::string_view context) const {
    return {code_, fmt::format("{}: {}", context, message_), hint_};
  }

  // The same error with `hint` as its next step, unless it has one: what a caller knows and the
  // place of the error did not.
  Error or_hint(std::string_view hint) const {
    return hint_.empty() ? Error(code_, message_, std::string(hint)) : *this;
  }

 private:
  Code code_;
  std::string message_;
  std::string hint_;
};

// Throws Error. The one way to report bad input or a bad environment.
[[noreturn]] inline void throw_error(Code code, std::string message, std::string hint = {}) {
  throw Error(code, std::move(message), std::move(hint));
}

}  // namespace octet

// Throws Error{Code::Bug} with the condition, the place and a formatted message when `condition` is
// false.
#define OCTET_CHECK(condition, ...)                                                           \
  do {                                                                                        \
    if (!(condition)) [[unlikely]] {                                                          \
      ::octet::throw_error(::octet::Code::Bug,                                                \
                           ::fmt::format("{}:{}: {} does not hold: {}", __FILE__, __LINE__,   \
                                         #condition, ::fmt::format(__VA_ARGS__)),             \
                           "this is a bug of octet; please report it with the command used"); \
    }                                                                                         \
  } while (false)
