#include "text/jinja_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "text/jinja_print.h"

namespace octet::jinja {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Value variables(const char* json = "{}") {
  Budget budget{Limits{}};
  return from_json(nlohmann::ordered_json::parse(json), "", budget);
}

std::string render(std::string_view source, const Limits& limits = {}) {
  return Template(source, "test")
      .render(
          variables(), [] { return std::tm{}; }, limits);
}

// The message of the error that compiling or rendering gives.
std::string error_of(std::string_view source, const Limits& limits = {}) {
  try {
    return "no error, but: " + render(source, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    return error.message();
  }
}

std::string repeated(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(JinjaTemplate, NamesWhatItDoesNotKnowAndTheLine) {
  EXPECT_THAT(error_of("a\n{% frobnicate %}"), AllOf(HasSubstr("line 2"), HasSubstr("frobnicate")));
  EXPECT_THAT(error_of("\n\n{{ 1 | frob }}"),
              AllOf(HasSubstr("line 3"), HasSubstr("unknown filter 'frob'")));
  EXPECT_THAT(error_of("\n{{ 1 is frob }}"),
              AllOf(HasSubstr("line 2"), HasSubstr("unknown test 'frob'")));
  EXPECT_THAT(error_of("\n{{ frob(1) }}"), AllOf(HasSubstr("line 2"), HasSubstr("'frob'")));
  EXPECT_THAT(error_of("\n{{ 'a'.frob() }}"), AllOf(HasSubstr("line 2"), HasSubstr("'frob'")));
  EXPECT_THAT(error_of("{{ 'a'.encode() }}"), HasSubstr("'encode' of strings is not supported"));
  EXPECT_THAT(error_of("{% include 'x' %}"), HasSubstr("'include' is not supported"));
  EXPECT_THAT(error_of("{% for x in y recursive %}{% endfor %}"), HasSubstr("recursive"));
  EXPECT_THAT(error_of("{% for x in [1] %}{{ loop.changed(x) }}{% endfor %}"),
              HasSubstr("loop.changed is not supported"));
}

TEST(JinjaTemplate, SaysTheTemplateItsNameAndTheRunningLine) {
  const Template made("\n{% set x = 1 %}\n{{ x.y.z }}\n", "tool_use");
  try {
    made.render(variables(), [] { return std::tm{}; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "template 'tool_use', line 3: 'int object' has no attribute 'y'");
  }
}

TEST(JinjaTemplate, ReportsRaisedExceptionsInTheWordsOfTheTemplate) {
  try {
    render("{% if true %}\n{{ raise_exception('no ' ~ 5) }}{% endif %}");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "no 5");
    EXPECT_THAT(error.hint(), HasSubstr("line 2"));
  }
}

TEST(JinjaTemplate, ReportsRaisedExceptionsThatSayNothing) {
  EXPECT_EQ(error_of("{{ raise_exception('') }}"),
            "the template raised an error without a message");
}

TEST(JinjaTemplate, RendersTheSameTemplateManyTimesFromManyThreads) {
  const Template made(
      "{% set ns = namespace(n=0) %}{% for i in list %}{% set ns.n = ns.n + i %}"
      "{% endfor %}{{ ns.n }}",
      "test");
  const Value input = variables(R"({"list": [1, 2, 3]})");
  std::vector<std::thread> threads;
  std::array<bool, 4> right{};
  for (bool& ok : right) {
    threads.emplace_back([&ok, &made, &input] {
      ok = true;
      for (int i = 0; i < 100; ++i) ok &= made.render(input, [] { return std::tm{}; }) == "6";
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, ::testing::Each(true));
}

TEST(JinjaTemplate, CompilesNoSourceThatIsNotUtf8) {
  EXPECT_THAT(error_of("ab\xFFzz"), HasSubstr("not UTF-8: byte 2 of 5"));
}

TEST(JinjaLimits, StopsEndlessRecursion) {
  EXPECT_THAT(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("deeper than 400"));
  EXPECT_THAT(
      error_of("{% macro f() %}{% call f() %}{% endcall %}{{ caller() }}{% endmacro %}{{ f() }}"),
      HasSubstr("deeper than"));
}

TEST(JinjaLimits, StopsDeepSource) {
  EXPECT_THAT(error_of("{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}"),
              HasSubstr("nests deeper"));
  EXPECT_THAT(error_of("{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}"),
              HasSubstr("nests deeper"));
  EXPECT_THAT(error_of("{{ " + repeated("not ", 5000) + "1 }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(error_of("{{ " + repeated("-", 5000) + "1 }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(error_of("{{ 1" + repeated(" + 1", 5000) + " }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(error_of("{{ x" + repeated(".a", 5000) + " }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(error_of("{{ x" + repeated("|list", 5000) + " }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(error_of("{{ 1" + repeated(" if 1 else 1", 5000) + " }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(error_of(repeated("{% if 1 %}", 5000)), HasSubstr("tags nest deeper"));
  EXPECT_THAT(error_of("{% set " + repeated("(", 5000) + "a" + repeated(")", 5000) + " = 1 %}"),
              HasSubstr("nests deeper"));
}

TEST(JinjaLimits, AllowsLongFlatSource) {
  EXPECT_EQ(render("{{ ''" + repeated(" ~ 'x'", 5000) + " }}").size(), 5000u);
  EXPECT_EQ(render(repeated("{% if 1 %}x{% endif %}", 5000)).size(), 5000u);
  EXPECT_EQ(render("{{ [" + repeated("1,", 5000) + "]|length }}"), "5000");
}

TEST(JinjaLimits, StopsLongLoops) {
  const Limits limits{.steps = 100'000};
  EXPECT_THAT(
      error_of("{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}",
               limits),
      HasSubstr("more than 100000 steps"));
}

TEST(JinjaLimits, StopsLongOutput) {
  const Limits limits{.text_bytes = 1000};
  EXPECT_THAT(error_of("{% for a in range(1000) %}xx{% endfor %}", limits),
              HasSubstr("at most 1000"));
  EXPECT_THAT(error_of("{{ 'a' * 1001 }}", limits), HasSubstr("at most 1000"));
}

TEST(JinjaLimits, StopsStringsAndListsThatMultiply) {
  for (const char* source : {
           "{{ 'a' * 10000000000 }}",
           "{{ [0] * 10000000000 }}",
           "{{ [[0] * 1000000] * 1000000 }}{% set x = [0] * 1000000 * 1000000 %}",
           "{{ ('a' * 4000000).replace('a', 'b' * 4000000) }}",
           "{{ ('x' * 4000000) | center(99999999999) }}",
           "{{ 'x'.ljust(99999999999) }}",
           "{{ '%99999999999d' % 1 }}",
           "{{ '{:99999999999}'.format(1) }}",
           "{{ ('\\n' * 1000000) | indent(1000000, blank=true) }}",
           "{{ ['a' * 3000000] | join('b') * 3 }}",
           "{{ (('a' * 3000000) | list) | join('bbbbbbbb') }}",
           "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% "
           "endfor %}",
           "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% "
           "endfor %}",
           "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% "
           "endfor %}{{ ns.s }}",
           "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% "
           "endfor %}{{ ns.s | tojson }}",
           "{% set ns = namespace(s=[1], t=[1]) %}{% for i in range(99) %}{% set ns.s = [ns.s, "
           "ns.s] %}"
           "{% set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s == ns.t }}",
           "{% set ns = namespace(s=(1,)) %}{% for i in range(99) %}{% set ns.s = (ns.s, ns.s) "
           "%}{% endfor %}{{ {ns.s: 1} }}",
           "{% macro m() %}{% for i in range(99999) %}{% call m2() %}{% endcall %}{% endfor %}{% "
           "endmacro %}"
           "{% macro m2() %}{{ caller() }}{% endmacro %}{% for i in range(99999) %}{{ m() }}{% "
           "endfor %}",
       }) {
    const Limits limits{.steps = 1'000'000, .text_bytes = 1u << 22, .memory_bytes = 1u << 25};
    EXPECT_THAT(
        error_of(source, limits),
        ::testing::AnyOf(HasSubstr("are allowed"), HasSubstr("more than"), HasSubstr("bytes")))
        << source;
  }
}

TEST(JinjaLimits, StopsValuesThatNestWithoutEnd) {
  EXPECT_THAT(error_of("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}"
                       "{% set ns.x = [ns.x] %}{% endfor %}"),
              HasSubstr("nests deeper than 200"));
  EXPECT_THAT(error_of("{% set ns = namespace(x={}) %}{% for i in range(1000) %}"
                       "{% set ns.x = {'a': ns.x} %}{% endfor %}"),
              HasSubstr("nests deeper than 200"));
  EXPECT_THAT(error_of("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"),
              HasSubstr("holds itself"));
}

// Cycles and survivors that a leak checker would find.
TEST(JinjaTemplate, LetsGoOfNamespacesLoopsAndMacrosThatHoldEachOther) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.list = [ns] %}x"), "x");
  EXPECT_EQ(render("{% set ns = namespace() %}{% for i in [1, 2] if i %}{% set ns.loop = loop %}"
                   "{% set l = [loop] %}{% endfor %}{% set kept = ns.loop %}{{ ns.loop.index }}"
                   "{{ ns.loop.nextitem is defined }}"),
            "2False");
  EXPECT_EQ(
      render("{% set ns = namespace() %}{% for i in 'ab' %}{% macro m() %}{{ i }}{% endmacro %}"
             "{% set ns.m = m %}{% endfor %}{{ ns.m() }}"),
      "b");
  EXPECT_THAT(error_of("{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}"
                       "{% set ns.m = [ns.l] %}{{ i.x.y }}{% endfor %}"),
              HasSubstr("has no attribute"));
}

TEST(JinjaTemplate, CountsIntegersExactlyOrRefuses) {
  EXPECT_EQ(render("{{ 9223372036854775806 + 1 }}"), "9223372036854775807");
  EXPECT_EQ(render("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ 9223372036854775807 * 2 }}", "{{ 2 ** 64 }}",
        "{{ (-9223372036854775807 - 1) // -1 }}", "{{ -(-9223372036854775807 - 1) }}",
        "{{ (-9223372036854775807 - 1) | abs }}", "{{ 9223372036854775808 }}", "{{ 1e30 | int }}",
        "{{ '9999999999999999999' | int }}", "{{ 9223372036854775807 | round(-1) }}",
        "{{ '%d' % 1e30 }}"}) {
    EXPECT_THAT(error_of(source), ::testing::AnyOf(HasSubstr("fit"), HasSubstr("hold"))) << source;
  }
}

TEST(JinjaStrftime, RefusesUnknownDirectivesAndIsSafeWithAnyTime) {
  EXPECT_THAT(error_of("{{ strftime_now('%Q') }}"), HasSubstr("'%Q' is not supported"));
  EXPECT_THAT(error_of("{{ strftime_now('100%') }}"), HasSubstr("'%' is not supported"));
  std::tm odd{};
  odd.tm_mon = 99;
  odd.tm_wday = -5;
  odd.tm_year = -3000;
  const std::string text =
      Template("{{ strftime_now('%A %B %c %V %U %y') }}", "test").render(variables(), [odd] {
        return odd;
      });
  EXPECT_THAT(text, HasSubstr("?"));
}

TEST(JinjaTemplate, ChargesTheScopesOfLoopsThatDoNothing) {
  // Each turn of the outer loop visits little but makes scopes, which is what takes the time.
  const Template looping("{% for a in range(1000) %}{% for b in [] %}{% endfor %}{% endfor %}",
                         "t");
  Budget budget{Limits{}};
  DictBuilder none(budget);
  const Value variables = none.take();
  const auto clock = [] { return std::tm{}; };
  EXPECT_EQ(looping.render(variables, clock, Limits{.steps = 20'000}), "");
  EXPECT_THROW(looping.render(variables, clock, Limits{.steps = 8'000}), Error);
}

}  // namespace
}  // namespace octet::jinja
