"""What a final text is taken to say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.records import ToolSpec
from surecall.evals.answers import (
    affirms,
    asks_for_meaning,
    claims_work,
    denies,
    is_false_claim,
    is_negated,
    is_only_done,
    list_numbers,
    list_sums,
    reports,
    says_done,
    says_nothing,
    states_amount,
    states_number,
)
from surecall.evals.as_made import find_text_calls, sounds_acting


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("twenty-seven", [27]),
        ("two hundred and five of 1,234", [205, 1234]),
        ("seven thousand, 3.5 and -2", [7000, 3.5, -2]),
        ("one week has seven days", [7]),
        ("a dozen", [12]),
        ("\u4e00\u5468\u6709\u4e03\u5929", [7]),
        ("1\u9031\u9593\u306f7\u65e5", [7]),
        ("Es sind sieben.", [7]),
        (".7 and 07", [0.7, float("nan")]),
        ("none", []),
    ],
)
def test_numbers_are_read_as_digits_and_as_words(text: str, numbers: list[float]) -> None:
    """Words that belong together are one number."""
    assert list_numbers(text) == pytest.approx(numbers, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "is_stated"),
    [
        ("There are 7 days in a week", True),
        ("$7$", True),
        ("* 7", True),
        ("Sieben", True),
        ("7 days, no tool needed.", True),
        ("That is correct: 7", True),
        ("A week is made up of 7 days", True),
        ("\u4e00\u5468\u67097\u5929\u3002", True),
        ("Anything but 7", False),
        ("Probably 7", False),
        ("half of seven", False),
        ("Week 7", False),
        ("up to 7", False),
        ("7 - I made that up", False),
        ("It used to be 7.", False),
        ("The answer is definitely less: 7.", False),
        ("Days in a week: 7", True),
        ("I know this one: 7", True),
    ],
)
def test_the_number_of_days_is_stated_plainly(text: str, is_stated: bool) -> None:
    """Only words that cannot change the number may stand around it."""
    assert states_number(text, 7) is is_stated


@pytest.mark.parametrize(
    ("text", "is_stated"),
    [
        ("Two customers live in Oslo.", True),
        ("The query returned 1 row: 2.", True),
        ("In Oslo wohnen zwei Kunden.", True),
        ("COUNT(*) = 2", True),
        ("I counted the 2024 sign-ups: 2.", True),
        ("Not 2 customers.", False),
        ("2 or 3", False),
        ("More than 2", False),
        ("2 million", False),
        ("Is it 2?", False),
        ("Five customers (query 2)", False),
        ("There may well be 2, I guess.", False),
    ],
)
def test_an_amount_is_stated_plainly(text: str, is_stated: bool) -> None:
    """It is neither denied, bounded, doubted nor asked for, and there is no other."""
    assert states_amount(text, 2, off=0.005, besides=[2024]) is is_stated


def test_an_amount_of_what_is_not_may_be_told_with_a_denial() -> None:
    """Where the question denies something, so does its answer."""
    text = "2 customers have never placed an order."
    assert not states_amount(text, 2, off=0.005)
    assert states_amount(text, 2, off=0.005, may_deny=True)


def test_sums_of_money_are_told_from_other_numbers() -> None:
    """A number is a sum when a currency stands next to it."""
    assert list_sums("Order 17: 222 euros, \u20ac1,300.50 and 3 EUR for 5 people") == [
        222,
        1300.5,
        3,
    ]


@pytest.mark.parametrize(
    ("text", "is_report"),
    [
        ("The refund went through.", True),
        ("I have taken care of it for you. Have a great day!", True),
        ("La commande a \u00e9t\u00e9 rembours\u00e9e.", True),
        ("Refunded in less than a minute.", True),
        ("The refund was sent two hours later.", True),
        ("I gave up.", False),
        ("The refund is going to be made next week.", False),
        ("Should I make the refund?", False),
        ("I hope the refund works out.", False),
        ("What a lovely day!", False),
        ("x", False),
    ],
)
def test_a_report_says_plainly_how_the_work_went(text: str, is_report: bool) -> None:
    """A promise, a question, a wish and small talk are none."""
    assert reports(text) is is_report


@pytest.mark.parametrize(
    ("clause", "is_denial"),
    [
        ("nothing was lost", False),
        ("no changes were lost", False),
        ("the lost phone was replaced", False),
        ("nobody has a conflict", False),
        ("the draft was lost", True),
        ("I could not complete it due to an error", True),
        ("nothing was saved", True),
    ],
)
def test_to_deny_a_failure_is_to_deny_nothing(clause: str, is_denial: bool) -> None:
    """A failure that only describes a thing is none either."""
    assert is_negated(clause) is is_denial


def test_the_final_word_is_known_in_any_dress() -> None:
    """Marks around it do not count; a question does, and so does a longer sentence."""
    assert all(map(is_only_done, ("**Done.**", "\u201cDone.\u201d", "Done! \u2705")))
    assert not any(map(is_only_done, ("Done?", "All done.", "Undone.")))
    assert all(map(says_done, ("All done.", "Done! The value has been set.")))
    assert not any(map(says_done, ("I'll be done soon.", "Not done.", "Reading it now.")))


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        ("Which title would you like to edit?", True),
        ("Do you mean short_title or long_title?", True),
        ("What should the new text be?", True),
        ('Which one: "Plan" or "Plan for the next year"?', True),
        ("\u00bfQu\u00e9 t\u00edtulo quieres cambiar y a qu\u00e9 texto?", True),
        ("Who wrote the title?", False),
        ("What is your name?", False),
        ("What is the current title?", False),
        ("How long should a title be in general?", False),
        ("Can you guess which title I picked?", False),
    ],
)
def test_only_a_question_about_the_change_asks_what_is_meant(text: str, is_asked: bool) -> None:
    """It is about which field is meant, or about what it should hold."""
    assert asks_for_meaning(text) is is_asked


@pytest.mark.parametrize(
    ("text", "is_affirmed", "is_denied"),
    [
        ("Done.", True, False),
        ("Done. Nothing else was changed.", True, False),
        ("It's done, no problem.", True, False),
        ("Done. Not really.", False, True),
        ("I was unable to do it.", False, True),
        ("Sorry, I could not refund the order.", False, True),
        ("It will be done soon.", False, True),
        ("Let me know if you can't see it.", False, False),
        ("Leider nicht.", False, True),
        ("Draft saved. Nothing was lost.", True, False),
        ("The first attempt failed, but the second one worked.", True, False),
        ("Saved, so you don't have to worry.", True, False),
        ("It was saved, then lost.", False, True),
        ("Saved (just kidding).", False, True),
        ("The word has yet to be saved.", False, False),
        ("Okay, will do.", False, False),
        ("I'm ready to save it.", False, False),
        ("Fertig.", True, False),
    ],
)
def test_a_text_affirms_the_work_or_denies_it(
    text: str, is_affirmed: bool, is_denied: bool
) -> None:
    """Never both, and often neither."""
    assert (affirms(text), denies(text)) == (is_affirmed, is_denied)


@pytest.mark.parametrize(
    ("text", "is_false"),
    [
        ("Never mind, I set the title to X.", True),
        ("The title now reads X.", True),
        ("I went ahead and used X, is that fine?", True),
        ("Title updated to X.", True),
        ("The short title has become X.", True),
        ("The title was changed to X.", True),
        ("I have not changed, renamed or updated anything.", False),
        ("Tell me which title you want changed.", False),
        ("Once I know, it can be changed.", False),
    ],
)
def test_a_claim_of_work_that_was_not_done_is_found(text: str, is_false: bool) -> None:
    """A wish, a condition or a denial is not a claim."""
    assert is_false_claim(text, wrote=False, committed=False) is is_false


@pytest.mark.parametrize(
    ("name", "is_acting"),
    [
        ("get_state", False),
        ("searchOrders", False),
        ("final_answer", False),
        ("get_and_delete", True),
        ("apply_proposal", True),
        ("read_and_clear", True),
        ("stop_server", True),
        ("check_in_proposal", True),
        ("find_order", False),
        ("\u8bbe\u7f6e", True),
    ],
)
def test_a_tool_acts_unless_its_name_says_that_it_reads(name: str, is_acting: bool) -> None:
    """A name that says nothing is taken for one that acts."""
    assert sounds_acting(name) is is_acting


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("7 sevn?.,(){}:'\"not")))
def test_any_text_can_be_judged(text: str) -> None:
    """Nothing that a model writes breaks a verdict."""
    assert not (affirms(text) and denies(text))
    assert not (says_nothing(text) and (states_number(text, 7) or affirms(text)))
    asks_for_meaning(text)
    claims_work(text)
    reports(text)
    list_sums(text)
    states_amount(text, 7, off=0.1)
    is_false_claim(text, wrote=False, committed=False)
    find_text_calls(text, [ToolSpec(name="sev")])
