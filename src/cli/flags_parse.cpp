// Reads words by the flag table. Boost.Program_options does the reading (prefixes, -nV, -tp V,
// values, --); the table gives it the names, and what it found is checked and put under the
// canonical names here.
#include <algorithm>
#include <boost/program_options.hpp>
#include <climits>

#include "base/plural.h"
#include "cli/flags_lookup.h"
#include "cli/flags_value.h"
#include "cli/help_format.h"

namespace octet {
namespace po = boost::program_options;
namespace {

// -tp is a long name behind one dash. Guessing accepts unambiguous prefixes.
constexpr int kStyle =
    po::command_line_style::unix_style | po::command_line_style::allow_long_disguise;

// All names of a row for Boost, separated by commas, the letter last. With disguised long names -p
// would be a prefix of every --p..., so the letter is an exact long name as well ("prompt,p,p"):
// exact names win over prefixes.
std::string boost_names(const Flag& flag, bool negative) {
  std::string names;
  for (std::string_view name : long_names(flag)) {
    names += fmt::format("{}{}{}", names.empty() ? "" : ",", negative ? "no-" : "", name);
  }
  if (flag.letter != 0 && !negative) names += fmt::format(",{0},{0}", flag.letter);
  return names;
}

po::options_description boost_table(const CommandSpec& spec) {
  po::options_description table;
  for (const Flag* flag : all_flags(spec)) {
    const std::string names = boost_names(*flag, false);
    if (flag->kind == FlagKind::Switch) {
      table.add_options()(names.c_str(), "");
      if (!negated(*flag).empty()) table.add_options()(boost_names(*flag, true).c_str(), "");
    } else if (flag->implicit) {
      const auto* value = po::value<std::string>()->implicit_value(std::string(*flag->implicit));
      table.add_options()(names.c_str(), value, "");
    } else {
      table.add_options()(names.c_str(), po::value<std::string>(), "");
    }
  }
  return table;
}

// The name in a flag word: "--max_len=5" gives "max_len".
std::string_view name_in(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  return word.substr(0, word.find('='));
}

bool is_switch(const NameMatch& match) {
  return match.flag->kind == FlagKind::Switch;
}

// Called by Boost before its own parsers, with the words from a flag position on. Boost also shows
// it the word after a flag, alone, to see whether that is a flag. Rewrites _ in a known name, and
// --name= to the two words --name and "", since Boost takes no empty value after =.
std::vector<po::option> rewrite_first(const CommandSpec& spec, std::vector<std::string>& words) {
  std::string& word = words.front();
  if (word.size() < 2 || word[0] != '-' || word == "--") return {};
  const auto matches = find_names(spec, name_in(word));
  const size_t end = std::min(word.find('='), word.size());
  if (!matches.empty()) {
    word = with_dashes(std::string_view(word).substr(0, end)) + word.substr(end);
  }
  const bool switches = !matches.empty() && std::all_of(matches.begin(), matches.end(), is_switch);
  if (end + 1 == word.size() && !switches) {
    word.pop_back();
    words.insert(words.begin() + 1, std::string());
  }
  return {};
}

[[noreturn]] void throw_ambiguous(const CommandSpec& spec, std::string_view word) {
  const std::string_view name = name_in(word);
  std::vector<std::string> candidates;
  for (const NameMatch& match : find_names(spec, name)) {
    candidates.push_back(fmt::format("--{}", match.name));
  }
  throw_error(Code::BadInput,
              fmt::format("flag '--{}' of 'octet {}' is ambiguous: it begins {}", name, spec.name,
                          fmt::join(candidates, ", ")),
              "write one of them in full");
}

[[noreturn]] void throw_unknown(const CommandSpec& spec, std::string_view word) {
  const std::string_view dashed = word.substr(0, word.find('='));
  throw_error(Code::BadInput, fmt::format("'octet {}' has no flag '{}'", spec.name, dashed),
              did_you_mean(spec, name_in(word)) + help_hint(spec));
}

[[noreturn]] void throw_missing(const CommandSpec& spec, std::string_view name,
                                std::string_view next = {}) {
  const auto matches = find_names(spec, name);
  const std::string full = matches.size() == 1 ? matches[0].name : std::string(name);
  if (next.empty()) {
    throw_error(Code::BadInput, fmt::format("--{} takes a value, got none", full),
                fmt::format("a value that looks like a flag is written --{}=VALUE", full));
  }
  throw_error(Code::BadInput,
              fmt::format("--{} takes a value, got the flag '{}' in its place", full, next),
              fmt::format("if '{0}' is the value, write --{1}={0}", next, full));
}

std::vector<po::option> boost_parse(const CommandSpec& spec, std::span<const std::string> words) {
  const po::options_description table = boost_table(spec);
  const std::vector<std::string> list(words.begin(), words.end());
  try {
    po::command_line_parser parser(list);
    parser.options(table).style(kStyle).allow_unregistered();
    parser.extra_style_parser(
        [&](std::vector<std::string>& rest) { return rewrite_first(spec, rest); });
    return parser.run().options;
  } catch (const po::ambiguous_option& error) {
    throw_ambiguous(spec, error.get_option_name());
  } catch (const po::invalid_syntax& error) {
    const std::string option = error.get_option_name();
    if (error.kind() == po::invalid_syntax::extra_parameter ||
        error.kind() == po::invalid_syntax::empty_adjacent_parameter) {
      throw_error(Code::BadInput, fmt::format("--{} takes no value, got one", name_in(option)),
                  fmt::format("write --{0}, or --no-{0} to turn it off", name_in(option)));
    }
    throw_missing(spec, name_in(option));
  }
}

}  // namespace

// Puts what Boost found into a ParsedArgs.
class ArgsBuilder {
 public:
  explicit ArgsBuilder(const CommandSpec& spec) : spec_(spec), args_(spec) {}

  void add(const po::option& option) {
    if (option.unregistered) throw_unknown(spec_, option.original_tokens.front());
    if (option.string_key.empty()) {
      words_.insert(words_.end(), option.value.begin(), option.value.end());
      return;
    }
    const NameMatch match = find_names(spec_, option.string_key).at(0);
    if (match.flag->kind == FlagKind::Switch)
      return store(*match.flag, match.negative ? "off" : "on");
    if (match.flag->implicit) return add_optional(*match.flag, option);
    const bool own_word = option.original_tokens.size() > 1;
    if (own_word && is_flag_word(spec_, option.value.at(0))) {
      throw_missing(spec_, match.name, option.value[0]);
    }
    store(*match.flag, option.value.at(0));
  }

  ParsedArgs finish() {
    if (const auto found = args_.values_.find("help"); found != args_.values_.end()) {
      args_.help_ = found->second.back();
      return std::move(args_);
    }
    for (const auto& [name, values] : args_.values_) {
      for (const std::string& value : values) check_given(args_.flag(name), value);
    }
    for (const Positional& one : spec_.positionals) place(one);
    if (next_ < words_.size()) throw_extra();
    return std::move(args_);
  }

 private:
  void store(const Flag& flag, std::string value) {
    args_.values_[std::string(flag.name)].push_back(std::move(value));
  }

  // Boost gives a flag with an optional value the next word that is no flag. It keeps it only when
  // it can be one: a number, or one of the choices. Other texts need --name=V, so that
  // "--flag MODEL" works.
  void add_optional(const Flag& flag, const po::option& option) {
    if (option.value.empty()) return store(flag, std::string(*flag.implicit));
    const std::string& value = option.value[0];
    if (option.original_tokens.size() > 1 && !fits(flag, value)) {
      store(flag, std::string(*flag.implicit));
      words_.push_back(value);
      return;
    }
    store(flag, value);
  }

  static bool fits(const Flag& flag, const std::string& value) {
    if (value.empty()) return true;  // --name= in two words
    if (!is_numeric(flag.kind)) return is_word(flag, value);
    try {
      static_cast<void>(is_word(flag, value) ? 0.0 : number_value(flag, value));
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void place(const Positional& one) {
    std::vector<std::string> taken;
    const bool by_flag = !one.flag.empty() && args_.has(one.flag);
    if (by_flag) {
      taken.push_back(*args_.text(one.flag));
    } else {
      while (next_ < words_.size() && (one.repeated || taken.empty())) {
        check_word(one, words_[next_]);
        taken.push_back(words_[next_++]);
      }
    }
    if (taken.empty() && one.required) {
      throw_error(
          Code::BadInput,
          fmt::format("'octet {}' needs {}: {}", spec_.name, positional_word(one), one.help),
          fmt::format("'octet {} --help' shows how", spec_.name));
    }
    if (!taken.empty()) args_.arguments_[std::string(one.name)] = std::move(taken);
  }

  void check_given(const Flag& flag, const std::string& value) const {
    try {
      check_value(flag, value);
    } catch (const Error& error) {
      throw error.or_hint(help_hint(spec_));
    }
  }

  void check_word(const Positional& one, const std::string& word) const {
    const auto& choices = one.choices;
    if (choices.empty() || std::find(choices.begin(), choices.end(), word) != choices.end()) return;
    const auto found = nearest(word, choices);
    throw_error(Code::BadInput,
                fmt::format("{} of 'octet {}' is one of {}, got '{}'", positional_word(one),
                            spec_.name, fmt::join(choices, ", "), word),
                found ? fmt::format("did you mean {}?", *found) : help_hint(spec_));
  }

  [[noreturn]] void throw_extra() const {
    throw_error(Code::BadInput,
                fmt::format("'octet {}' takes {}, got '{}' as well", spec_.name,
                            counted(args_.arguments_.size(), "argument"), words_[next_]),
                "quote a value that contains spaces; " + help_hint(spec_));
  }

  const CommandSpec& spec_;
  ParsedArgs args_;
  std::vector<std::string> words_;  // positionals in order
  size_t next_ = 0;                 // first of them not placed
};

ParsedArgs parse(const CommandSpec& spec, std::span<const std::string> words) {
  ArgsBuilder builder(spec);
  for (const po::option& option : boost_parse(spec, words)) builder.add(option);
  return builder.finish();
}

}  // namespace octet
