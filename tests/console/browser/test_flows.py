"""What an operator does in a browser, with a real worker where jobs have to run."""

import base64
import os
import re
import signal

import pytest

from django_rtq.console.reading.readers import Readers
from tests.console.browser.actions import follow, menu_of, shows
from tests.console.browser.chromium import window
from tests.console.browser.conftest import OFTEN, body
from tests.support.jobs import QUEUE, dead_job, new_job, queued_job
from tests.support.waiting import wait_until

REFRESH_SECONDS = OFTEN
OVERVIEW = "/admin/django_rtq/queue/"
DEAD = f"/admin/django_rtq/queue/{QUEUE}/?state=dead"
BOX = "input[type=checkbox][name=id]"


@pytest.fixture
def dead_letters(broker):
    return [dead_job(broker, f"letter{n}", body=body(f"letter{n}")) for n in range(12)]


def tab(page, state):
    """The tab of a state with its count."""
    return page.locator(f".rtq-tabs a[href*='state={state}']")


def status(page):
    """The refresh status of the page."""
    return page.locator(".rtq-live [role=status]")


def press_until(page, key, selector):
    """Press a key until the focused element matches, and check that the focus is visible."""
    for _ in range(120):
        page.keyboard.press(key)
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"{selector} is not reached with {key}")


def test_an_open_page_follows_what_happens(broker, page):
    queued_job(broker, "first")
    page.goto(f"/admin/django_rtq/queue/{QUEUE}/?state=queued")
    page.evaluate("window.isTheSamePage = true")
    shows(tab(page, "queued"), "1")
    queued_job(broker, "second")
    shows(tab(page, "queued"), "2")
    assert page.locator(".rtq-id a").count() == 2
    assert page.evaluate("window.isTheSamePage")


def test_a_page_can_be_halted_and_stays_so(broker, page):
    queued_job(broker, "first")
    page.goto(OVERVIEW)
    page.get_by_role("button", name="Stop refreshing").click()
    shows(status(page), "Not refreshing")
    with page.expect_request("**/queue/default/**"):
        follow(page.get_by_role("link", name=QUEUE, exact=True))
    shows(status(page), "Not refreshing")
    page.get_by_role("button", name="Start refreshing").click()
    shows(status(page), "Live")


def test_ticks_survive_a_refresh(broker, dead_letters, page):
    page.goto(DEAD)
    page.locator(BOX).first.check()
    dead_job(broker, "later", body=body("later"))
    shows(tab(page, "dead"), "13")
    assert page.locator(f"{BOX}:checked").count() == 1
    assert page.locator(BOX).count() == 12


def test_a_page_says_since_when_it_is_stale(broker, admin_server, page, console_errors):
    queued_job(broker, "first")
    page.goto(OVERVIEW)
    shows(status(page), "Live")
    admin_server.stop()
    shows(status(page), "No response; data from")
    shows(page.locator(".rtq"), QUEUE)  # what was seen last is still there
    admin_server.start()
    shows(status(page), "Live")
    console_errors.clear()  # the browser has said that nobody answered


def test_a_page_whose_server_hangs_is_not_called_live(broker, admin_server, page):
    queued_job(broker, "first")
    page.goto(OVERVIEW)
    shows(status(page), "Live")
    admin_server.freeze()
    try:
        shows(status(page), "No response; data from")
        shows(page.locator("[data-rtq-age]"), "ago")
    finally:
        admin_server.thaw()
    shows(status(page), "Live")


def test_a_search_through_many_jobs_is_repeated_when_somebody_asks_for_it(broker, page):
    for start in range(0, 2100, 100):
        broker.enqueue(QUEUE, [new_job(f"job{start + n}") for n in range(100)])
    page.goto(f"/admin/django_rtq/queue/{QUEUE}/?state=queued&q=task:nosuch")
    shows(status(page), "Not refreshing")
    shows(page.locator("[data-rtq-halt]"), "not refreshed automatically")
    with page.expect_request(f"**/queue/{QUEUE}/**"):
        page.get_by_role("button", name="Start refreshing").click()
    shows(status(page), "Not refreshing")


def test_a_page_tells_how_old_it_is(broker, page):
    queued_job(broker, "first")
    page.goto(OVERVIEW)
    page.get_by_role("button", name="Stop refreshing").click()
    shows(page.locator("[data-rtq-age]"), re.compile(r"([2-9]|\d\d) sec\. ago"))


def test_a_page_that_was_opened_while_redis_was_away_comes_back_by_itself(
    broker, redis_server, browser, admin_server, tmp_path
):
    queued_job(broker, "first")
    with window(browser, admin_server, java_script_enabled=False) as page:
        os.kill(redis_server.pid, signal.SIGSTOP)
        try:
            assert page.goto(OVERVIEW).status == 503
            shows(page.locator(".rtq"), "retries every 1 s")
        finally:
            os.kill(redis_server.pid, signal.SIGCONT)
        page.wait_for_selector(f".rtq tbody th a[href='{QUEUE}/']")


def test_the_page_of_a_job_that_somebody_else_discards_says_that_it_is_gone(broker, dead_letters, page, console_errors):
    page.goto(f"/admin/django_rtq/job/{dead_letters[0].id}/?queue={QUEUE}")
    assert page.get_by_role("button", name="Requeue").is_visible()
    Readers(broker).actions.done("discard", QUEUE, [dead_letters[0].id])
    shows(status(page), "This no longer exists.")
    shows(page.locator(".rtq"), "was not found")
    assert page.locator("[formaction]").count() == 0
    console_errors.clear()  # the browser notes each 404


def test_ten_dead_letters_are_ticked_and_the_rest_confirmed_and_all_run(broker, dead_letters, page, worker, journal):
    page.goto(DEAD)
    boxes = page.locator(BOX)
    boxes.nth(0).click()
    boxes.nth(9).click(modifiers=["Shift"])
    shows(page.locator("[data-rtq-selected]"), "10")
    follow(page.get_by_role("button", name="Requeue selected"))
    shows(page.locator(".messagelist"), "10")
    shows(tab(page, "queued"), "10")

    follow(page.get_by_role("link", name="Requeue all matching …"))
    shows(page.locator(".rtq"), "2")
    assert page.locator("[data-rtq-live]").count() == 0  # a question does not change while it is read
    follow(page.locator(".rtq form:not([role=search]) button[type=submit]"))
    shows(page.locator(".messagelist"), "2")

    page.goto(f"/admin/django_rtq/queue/{QUEUE}/?state=finished")
    worker()
    shows(tab(page, "finished"), "12")
    wait_until(lambda: journal.ends() == 12)
    assert page.locator(".rtq-id a").count() == 12


def test_what_is_wrong_is_ended_from_the_overview_in_three_clicks(broker, rtq, dead_letters, page):
    rtq.queues[QUEUE].pause()
    page.goto(OVERVIEW)
    banner = page.locator(".rtq-health")
    shows(banner, "12 jobs died in the last hour")
    shows(banner, "since")

    follow(banner.get_by_role("button", name="Resume queue"))
    shows(page.locator(".messagelist"), f"Queue {QUEUE} was resumed.")
    follow(banner.get_by_role("link", name="Requeue …"))
    follow(page.locator(".rtq form:not([role=search]) button[type=submit]"))
    shows(page.locator(".messagelist"), "12")

    page.goto(OVERVIEW)
    shows(banner, "No worker is running")
    assert "died" not in banner.inner_text()


def test_what_is_ticked_is_discarded_after_a_question_also_without_javascript(
    broker, browser, admin_server, dead_letters, readers
):
    with window(browser, admin_server, java_script_enabled=False) as page:
        page.goto(DEAD)
        assert not page.locator(".rtq-live").is_visible()
        assert not page.locator("[data-rtq-all]").is_visible()
        page.locator(BOX).nth(0).check()
        page.locator(BOX).nth(1).check()
        follow(page.get_by_role("button", name="Discard selected …"))
        shows(page.locator(".rtq-banner"), "Discard 2 dead letters?")
        follow(page.get_by_role("link", name="Back"))
        assert readers.queues.get(QUEUE).dead == 12
        page.locator(BOX).nth(0).check()
        follow(page.get_by_role("button", name="Discard selected …"))
        follow(page.get_by_role("button", name="Discard", exact=True))
        shows(page.locator(".messagelist"), "1 dead letter was discarded.")
        shows(tab(page, "dead"), "11")


def test_a_keyboard_is_enough(broker, dead_letters, page):
    page.goto(OVERVIEW)
    press_until(page, "Tab", f".rtq tbody th a[href$='{QUEUE}/']")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/queue/{QUEUE}/")
    press_until(page, "Tab", ".rtq-tabs a[href*='state=dead']")
    page.keyboard.press("Enter")
    page.wait_for_url("**state=dead**")
    press_until(page, "Tab", BOX)
    page.keyboard.press("Space")
    press_until(page, "Tab", "button[formaction*='requeue']")
    page.keyboard.press("Enter")
    shows(page.locator(".messagelist"), "1")
    shows(tab(page, "dead"), "11")


def test_the_focus_survives_a_refresh(broker, page):
    queued_job(broker, "first")
    page.goto(OVERVIEW)
    press_until(page, "Tab", f".rtq tbody th a[href$='{QUEUE}/']")
    queued_job(broker, "second")
    shows(page.locator(".rtq-figures tbody tr").first, "2")
    assert page.evaluate("document.activeElement.getAttribute('href')").endswith(f"{QUEUE}/")


def test_a_menu_keeps_its_row_while_it_is_open_and_is_closed_by_escape(broker, page):
    queued_job(broker, "first")
    page.goto(OVERVIEW)
    summary = menu_of(page).locator(".rtq-menu summary").first
    queued_job(broker, "second")
    shows(page.locator(".rtq-line-of"), "Queued 2")  # another part of the page
    assert page.get_by_role("button", name="Pause queue").is_visible()
    assert page.locator(".rtq-figures tbody tr td").first.inner_text() == "1"
    page.keyboard.press("Escape")
    assert not page.get_by_role("button", name="Pause queue").is_visible()
    assert summary.evaluate("each => each === document.activeElement")
    page.locator("h1").click()
    summary.evaluate("each => each.blur()")
    shows(page.locator(".rtq-figures tbody tr td").first, "2")


def test_no_click_is_lost_by_a_refresh_while_the_button_is_down(broker, page):
    queued_job(broker, "first")
    page.goto(f"{OVERVIEW}{QUEUE}/?state=queued")
    page.locator(".rtq-id a").hover()
    page.mouse.down()
    queued_job(broker, "second")
    for _ in range(3):  # the last one is sent after the one before is shown, which knows the second job
        with page.expect_response("**state=queued"):
            pass
    assert "1" in tab(page, "queued").inner_text()  # no region changes, as one above could move the link away
    with page.expect_navigation():
        page.mouse.up()
    page.wait_for_url("**/job/**")


def test_a_picture_of_the_page_is_light_or_dark(browser, page, dead_letters):
    page.goto(DEAD)
    assert brightness(browser, page.screenshot()) > 170
    page.emulate_media(color_scheme="dark")
    assert brightness(browser, page.screenshot()) < 80


def brightness(browser, png):
    """The mean brightness of a screenshot, 0 to 255. Decoded in a browser page without a policy."""
    look = """async data => {
        const image = new Image();
        image.src = "data:image/png;base64," + data;
        await image.decode();
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [image.width, image.height];
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        const bytes = context.getImageData(0, 0, image.width, image.height).data;
        let [sum, number] = [0, 0];
        for (let i = 0; i < bytes.length; i += 40) { sum += (bytes[i] + bytes[i + 1] + bytes[i + 2]) / 3; number += 1; }
        return sum / number;
    }"""
    with browser.new_page() as blank:
        return blank.evaluate(look, base64.b64encode(png).decode())
