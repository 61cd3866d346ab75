"""What tests do on a page, and what they wait for."""


def follow(locator):
    """Click on what leads to another page, and wait until that page is loaded. A click alone returns before that."""
    with locator.page.expect_navigation():
        locator.click()


def shows(locator, text):
    """Wait until an element contains this text. A page that is being left may contain it, too: see follow()."""
    from playwright.sync_api import expect

    expect(locator).to_contain_text(text)


def find(page, query):
    """Search for jobs from the overview, without a click."""
    page.goto("/admin/django_rtq/queue/")
    page.keyboard.press("/")
    page.keyboard.type(query)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def menu_of(row):
    """Open the menu of a row, or the first one of a page. Returns the row."""
    row.locator(".rtq-menu summary").first.click()
    return row
