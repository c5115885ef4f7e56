// Text of others, as people may see it.
#include "support/printable.h"

#include <gtest/gtest.h>

namespace kvstore_ext {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  const std::string text = "key \"größe\", 日本語 \xf0\x9f\x9a\x80\n\tround 3";
  EXPECT_EQ(Printable(text), text);
  EXPECT_EQ(Printable(""), "");
}

TEST(Printable, ShowsNoControlCharacter) {
  EXPECT_EQ(Printable("\x1b[31mred\x1b[0m"), "?[31mred?[0m");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a?b");
  EXPECT_EQ(Printable("over\rwritten\x08\x7f"), "over?written??");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "?31m");  // as the escape with a bracket
}

TEST(Printable, ShowsNoBytesThatAreNoText) {
  EXPECT_EQ(Printable("\xff\xfe"), "??");
  EXPECT_EQ(Printable("cut \xe6\x97"), "cut ??");
  EXPECT_EQ(Printable("\x80 alone"), "? alone");
  EXPECT_EQ(Printable("\xc3("), "?(");
}

TEST(Printable, TakesNoOtherWayToWriteACharacter) {
  EXPECT_EQ(Printable("\xc0\xaf"), "??");            // a slash of two bytes
  EXPECT_EQ(Printable("\xe0\x80\xaf"), "???");       // of three
  EXPECT_EQ(Printable("\xf0\x80\x80\xaf"), "????");  // of four
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???");       // half of a pair in UTF-16
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "????");  // beyond the last character
  EXPECT_EQ(Printable("\xf5\x80\x80\x80"), "????");
}

}  // namespace
}  // namespace kvstore_ext
