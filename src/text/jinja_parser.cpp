#include "text/jinja_parser.h"

#include <algorithm>
#include <span>

#include "text/jinja_expression.h"

namespace octet::jinja {
namespace {

// Tags of Jinja that a chat template cannot use here: there are no other templates to load.
constexpr std::string_view kOtherTags[] = {"block",      "extends", "include", "import", "from",
                                           "autoescape", "do",      "trans",   "debug"};

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)), expressions_(tokens_) {}

  StatementList run() { return statements({}, "the template"); }

 private:
  using Names = std::span<const std::string_view>;

  // Statements up to a tag whose name is one of `ends`, whose name is then the current token.
  StatementList statements(Names ends, std::string_view owner) {
    if (++nesting_ > kMaxSyntaxDepth) {
      tokens_.error(fmt::format("tags nest deeper than {} levels", kMaxSyntaxDepth));
    }
    StatementList list;
    while (true) {
      const Token& token = tokens_.current();
      if (token.kind == TokenKind::End) {
        if (ends.empty()) break;
        tokens_.error(fmt::format("the template ends inside {}: {} is missing", owner,
                                  fmt::join(ends, " or ")));
      }
      if (token.kind == TokenKind::Data) {
        list.push_back(Statement{token.line, TextStatement{tokens_.take().text}});
      } else if (token.kind == TokenKind::VariableBegin) {
        list.push_back(output());
      } else {
        tokens_.take();  // {%
        const Token& name = tokens_.current();
        if (name.kind != TokenKind::Name) tokens_.unexpected("the name of a tag");
        if (std::find(ends.begin(), ends.end(), name.text) != ends.end()) break;
        list.push_back(tag());
      }
    }
    --nesting_;
    return list;
  }

  Statement output() {
    const int line = tokens_.take().line;
    ExpressionPtr value = expressions_.tuple();
    end_of(TokenKind::VariableEnd, "}}");
    return Statement{line, OutputStatement{std::move(value)}};
  }

  void end_of(TokenKind kind, std::string_view spelled) {
    if (tokens_.current().kind != kind) tokens_.unexpected(fmt::format("'{}'", spelled));
    tokens_.take();
    expressions_.refuse_unknown();
  }
  void end_of_tag() { end_of(TokenKind::BlockEnd, "%}"); }

  // The body after an opening tag, which a colon may end as in Python.
  StatementList body(Names ends, std::string_view owner) {
    tokens_.take_operator(":");
    end_of_tag();
    return statements(ends, owner);
  }

  // The body up to the one closing tag `end`, which is consumed.
  StatementList closed_body(std::string_view end, std::string_view owner) {
    StatementList list = body({&end, 1}, owner);
    tokens_.take();
    end_of_tag();
    return list;
  }

  Statement tag() {
    const int line = tokens_.current().line;
    const std::string name = tokens_.take().text;
    const auto made = [line](auto node) { return Statement{line, std::move(node)}; };
    if (name == "for") return made(for_loop());
    if (name == "if") return made(condition());
    if (name == "set") return set(line);
    if (name == "macro") return made(macro());
    if (name == "call") return made(call_block());
    if (name == "filter") return made(filter_block());
    if (name == "with") return made(with());
    if (name == "generation") {
      return made(GenerationStatement{isolated_body("endgeneration", "{% generation %}")});
    }
    if (name == "print") {
      OutputStatement output{expressions_.expression()};
      end_of_tag();
      return made(std::move(output));
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) {
        fail(fmt::format("line {}: {{% {} %}} stands outside of a loop", line, name));
      }
      end_of_tag();
      if (name == "break") return made(BreakStatement{});
      return made(ContinueStatement{});
    }
    if (std::find(std::begin(kOtherTags), std::end(kOtherTags), name) != std::end(kOtherTags)) {
      fail(fmt::format("line {}: the tag '{}' is not supported in chat templates", line, name));
    }
    fail(fmt::format("line {}: unknown tag '{}'", line, name));
  }

  // A body that is a function of its own: a loop around it cannot be left from inside.
  StatementList isolated_body(std::string_view end, std::string_view owner) {
    const int loops = std::exchange(loops_, 0);
    StatementList list = closed_body(end, owner);
    loops_ = loops;
    return list;
  }

  void refuse_loop_name(const Target& target) {
    if (target.name == "loop" && target.attribute.empty() && loop_depth_ > 0) {
      fail(fmt::format("line {}: cannot assign to the special variable loop", target.line));
    }
    for (const Target& part : target.targets) refuse_loop_name(part);
  }

  ForStatement for_loop() {
    static constexpr std::string_view kEnds[] = {"else", "endfor"};
    static constexpr std::string_view kEnd[] = {"endfor"};
    ForStatement loop;
    ++loop_depth_;
    loop.target = expressions_.target(false);
    refuse_loop_name(loop.target);
    tokens_.expect_name("in");
    loop.items = expressions_.tuple(false);
    if (tokens_.take_name("if")) loop.filter = expressions_.expression();
    if (tokens_.current().is_name("recursive")) {
      tokens_.error("recursive loops are not supported", "a macro that calls itself does the same");
    }
    ++loops_;
    loop.body = body(kEnds, "{% for %}");
    --loops_;
    if (tokens_.take().text == "else") {
      loop.otherwise = body(kEnd, "{% for %}");
      tokens_.take();
    }
    end_of_tag();
    --loop_depth_;
    return loop;
  }

  IfStatement condition() {
    static constexpr std::string_view kEnds[] = {"elif", "else", "endif"};
    static constexpr std::string_view kEnd[] = {"endif"};
    IfStatement node;
    expressions_.enter_branch();
    std::string end;
    do {
      ExpressionPtr test = expressions_.tuple(false);
      StatementList list = body(kEnds, "{% if %}");
      node.branches.emplace_back(std::move(test), std::move(list));
      end = tokens_.take().text;
    } while (end == "elif");
    if (end == "else") {
      node.otherwise = body(kEnd, "{% if %}");
      tokens_.take();
    }
    end_of_tag();
    expressions_.leave_branch();
    return node;
  }

  Statement set(int line) {
    Target target = expressions_.target(true);
    refuse_loop_name(target);
    if (tokens_.take_operator("=")) {
      ExpressionPtr value = expressions_.tuple();
      end_of_tag();
      return Statement{line, SetStatement{std::move(target), std::move(value)}};
    }
    SetBlockStatement block;
    block.target = std::move(target);
    block.filter = expressions_.captured_filter(false);
    block.body = closed_body("endset", "{% set %}");
    return Statement{line, std::move(block)};
  }

  // "(a, b=1)" of a macro or a call block.
  void signature(MacroStatement& macro) {
    tokens_.expect_operator("(");
    while (!tokens_.current().is_operator(")")) {
      if (!macro.parameters.empty()) tokens_.expect_operator(",");
      std::string name = expressions_.assignable_name();
      ExpressionPtr fallback;
      if (tokens_.take_operator("=")) {
        fallback = expressions_.expression();
      } else if (!macro.parameters.empty() && macro.parameters.back().second) {
        tokens_.error(fmt::format("the parameter '{}' without default follows one with", name));
      }
      macro.parameters.emplace_back(std::move(name), std::move(fallback));
    }
    tokens_.expect_operator(")");
  }

  void macro_body(MacroStatement& macro, std::string_view end, std::string_view owner) {
    expressions_.watches().emplace_back();
    macro.body = isolated_body(end, owner);
    const NameWatch watch = expressions_.watches().back();
    expressions_.watches().pop_back();
    const auto is_parameter = [&](std::string_view name) {
      return std::any_of(macro.parameters.begin(), macro.parameters.end(),
                         [&](const auto& parameter) { return parameter.first == name; });
    };
    macro.uses_caller = watch.caller && !is_parameter("caller");
    macro.uses_varargs = watch.varargs && !is_parameter("varargs");
    macro.uses_kwargs = watch.kwargs && !is_parameter("kwargs");
  }

  MacroStatement macro() {
    MacroStatement macro;
    macro.name = expressions_.assignable_name();
    signature(macro);
    macro_body(macro, "endmacro", "{% macro %}");
    return macro;
  }

  CallBlockStatement call_block() {
    CallBlockStatement block;
    block.caller.name = "caller";
    if (tokens_.current().is_operator("(")) signature(block.caller);
    block.call = expressions_.expression();
    if (!std::holds_alternative<CallNode>(block.call->node)) {
      tokens_.error("{% call %} needs a call, as in {% call f() %}");
    }
    macro_body(block.caller, "endcall", "{% call %}");
    return block;
  }

  FilterBlockStatement filter_block() {
    FilterBlockStatement block;
    block.filter = expressions_.captured_filter(true);
    block.body = closed_body("endfilter", "{% filter %}");
    return block;
  }

  WithStatement with() {
    WithStatement node;
    while (tokens_.current().kind != TokenKind::BlockEnd && !tokens_.current().is_operator(":")) {
      if (!node.assignments.empty()) tokens_.expect_operator(",");
      Target target;
      target.line = tokens_.current().line;
      target.name = tokens_.expect_identifier();
      tokens_.expect_operator("=");
      node.assignments.emplace_back(std::move(target), expressions_.expression());
    }
    node.body = closed_body("endwith", "{% with %}");
    return node;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int nesting_ = 0;
  int loops_ = 0;       // loops that {% break %} could leave
  int loop_depth_ = 0;  // loops around, whatever lies between
};

}  // namespace

StatementList parse(std::string_view source) {
  return Parser(source).run();
}

}  // namespace octet::jinja
