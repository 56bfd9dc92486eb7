from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0006_session_incidents"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="repeat", name="repeat_is_not_the_first"),
        migrations.AddConstraint(
            model_name="repeat",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__gte", 1), ("wait_s__gte", 0)),
                name="repeat_has_a_number",
            ),
        ),
    ]
